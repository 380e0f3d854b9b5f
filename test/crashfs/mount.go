package crashfs

import (
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// FS is a mounted file system. It is empty at first.
type FS struct {
	// Dir is where it is mounted.
	Dir string

	root uint64 // inode of the root directory

	// mu is held during each operation, so that the log has their order.
	mu    sync.Mutex
	log   []Op
	tried int // operations, with those that failed
	fault func(n int, op Op) syscall.Errno
	off   bool
}

// Mount mounts an empty file system for the duration of the test. It must be called outside of a synctest
// bubble. It skips the test if the machine cannot mount it.
func Mount(tb testing.TB) *FS {
	tb.Helper()
	if os.Getuid() != 0 {
		tb.Skip("mounting needs root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		tb.Skip("the kernel has no FUSE")
	}
	backing := tb.TempDir()
	var st syscall.Stat_t
	if err := syscall.Stat(backing, &st); err != nil {
		tb.Fatal(err)
	}
	f := &FS{Dir: tb.TempDir(), root: st.Ino}
	data := &fusefs.LoopbackRoot{Path: backing, Dev: st.Dev}
	root := &node{LoopbackNode: &fusefs.LoopbackNode{RootData: data}, fs: f}
	data.RootNode = root
	// Nothing is cached, so that the log has what the agent does.
	never := time.Duration(0)
	server, err := fusefs.Mount(f.Dir, root, &fusefs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "crashfs", Name: "crashfs", DisableXAttrs: true},
		EntryTimeout: &never, AttrTimeout: &never, NegativeTimeout: &never,
	})
	if err != nil {
		tb.Fatalf("mount crashfs: %v", err)
	}
	tb.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			tb.Errorf("unmount crashfs: %v", err)
			_ = syscall.Unmount(f.Dir, syscall.MNT_DETACH)
		}
	})
	return f
}

// Log returns the operations so far.
func (f *FS) Log() []Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

// Tried is the number of operations so far, with those that failed.
func (f *FS) Tried() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tried
}

// Fail sets a function that decides on each operation whether it fails; n counts operations from 1. It
// is called with a lock and must not use the file system. Nil: none fails.
func (f *FS) Fail(fault func(n int, op Op) syscall.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// CutAt cuts the power before operation n, counted from 1 and from the mount on: it fails, and so do all
// that follow. IsOff reports that.
func (f *FS) CutAt(n int) {
	f.Fail(func(now int, _ Op) syscall.Errno {
		if now < n {
			return 0
		}
		f.off = true
		return syscall.EIO
	})
}

// IsOff reports whether the power is cut.
func (f *FS) IsOff() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.off
}

// try executes an operation unless it is to fail, and records it if it succeeds. do may complete the
// operation.
func (f *FS) try(op Op, do func(op *Op) syscall.Errno) syscall.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tried++
	if f.fault != nil {
		if errno := f.fault(f.tried, op); errno != 0 {
			return errno
		}
	}
	errno := do(&op)
	if errno == 0 {
		f.log = append(f.log, op)
	}
	return errno
}
