// Package ownership gives a volume's files to the pod's group.
package ownership

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

const (
	readWrite = fs.FileMode(0o660)
	readOnly  = fs.FileMode(0o440)
	execute   = fs.FileMode(0o110)
)

// Group says whose a volume is to become.
type Group struct {
	ID int64
	// ReadOnly volumes get no write bits.
	ReadOnly bool
	// Policy OnRootMismatch spares a large volume the walk when its root is already right;
	// anything else always walks.
	Policy v1.PodFSGroupChangePolicy
}

// Apply hands everything below dir, then dir itself, to the group: it may read (and write)
// all, and what is made later in a folder belongs to it, too. The root comes last so that
// an interrupted walk is seen by the next one. A file that cannot be changed, such as one
// on a file system without owners, does not stop the rest.
func Apply(dir string, g Group) error {
	if g.Policy == v1.FSGroupChangeOnRootMismatch && g.matches(dir) {
		return nil
	}
	return g.walk(dir)
}

func (g Group) walk(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed by the pod meanwhile
	}
	if err != nil {
		return fmt.Errorf("look at file to hand over: %w", err)
	}
	if info.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return fmt.Errorf("list folder to hand over: %w", err)
		}
		for _, e := range entries {
			if err := g.walk(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	g.hand(path)
	return nil
}

// hand changes one file through a handle on it: between two looks at a path a pod that
// shares the volume could put a link there, and chmod would follow it.
func (g Group) hand(path string) {
	f, err := os.OpenFile(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	_ = unix.Fchownat(int(f.Fd()), "", -1, int(g.ID), unix.AT_EMPTY_PATH)
	// A link has no mode of its own.
	if info.Mode()&fs.ModeSymlink == 0 {
		_ = os.Chmod(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), info.Mode()|g.mask(info.IsDir()))
	}
}

func (g Group) mask(dir bool) fs.FileMode {
	mask := readWrite
	if g.ReadOnly {
		mask = readOnly
	}
	if dir {
		mask |= execute | fs.ModeSetgid
	}
	return mask
}

// matches reports whether the root already is as Apply would leave it.
func (g Group) matches(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	mask := g.mask(true)
	return ok && int64(st.Gid) == g.ID && info.Mode()&mask == mask
}
