// Package hungfs is a file system whose server stops answering: what a pod sees of an NFS server that is
// gone. System calls on it, and the processes that made them, hang in the kernel until Release.
package hungfs

import (
	"context"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// FS is a mounted file system. Every name in its root is an empty directory, except "file".
type FS struct {
	dir    string
	server *fuse.Server

	mu   sync.Mutex
	hung chan struct{} // closed by Release; nil while the server answers
}

// Mount mounts a file system that answers, until Hang. It is released and unmounted when the test ends. The
// test is skipped if the kernel has no FUSE.
func Mount(tb testing.TB, dir string) *FS {
	tb.Helper()
	f := &FS{dir: dir}
	server, err := fs.Mount(dir, &root{fs: f}, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, AllowOther: true, FsName: "hungfs", Name: "hungfs"},
	})
	if err != nil {
		tb.Skipf("mount a FUSE file system: %v", err)
	}
	f.server = server
	tb.Cleanup(f.close)
	return f
}

// Hang makes the server answer nothing from now on.
func (f *FS) Hang() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hung == nil {
		f.hung = make(chan struct{})
	}
}

// Release answers everything that waits.
func (f *FS) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hung != nil {
		close(f.hung)
		f.hung = nil
	}
}

func (f *FS) close() {
	f.Release()
	_ = unix.Unmount(f.dir, unix.MNT_DETACH)
	f.server.Wait()
}

// wait returns when the server answers. It ignores interrupts, as a server that is gone does.
func (f *FS) wait() {
	f.mu.Lock()
	hung := f.hung
	f.mu.Unlock()
	if hung != nil {
		<-hung
	}
}

type root struct {
	fs.Inode
	fs *FS
}

var (
	_ fs.NodeLookuper  = (*root)(nil)
	_ fs.NodeGetattrer = (*root)(nil)
	_ fs.NodeReaddirer = (*root)(nil)
	_ fs.NodeOpener    = (*root)(nil)
	_ fs.NodeReader    = (*root)(nil)
)

func (r *root) Lookup(ctx context.Context, name string, _ *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	r.fs.wait()
	mode := uint32(fuse.S_IFDIR)
	if name == "file" {
		mode = fuse.S_IFREG
	}
	return r.NewInode(ctx, &root{fs: r.fs}, fs.StableAttr{Mode: mode}), 0
}

func (r *root) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	r.fs.wait()
	out.Mode = r.StableAttr().Mode | 0o755
	return 0
}

func (r *root) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	r.fs.wait()
	return fs.NewListDirStream(nil), 0
}

func (r *root) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	r.fs.wait()
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (r *root) Read(context.Context, fs.FileHandle, []byte, int64) (fuse.ReadResult, syscall.Errno) {
	r.fs.wait()
	return fuse.ReadResultData(nil), 0
}
