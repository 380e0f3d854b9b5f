package safepath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"swiftlet/internal/filetree"
	"swiftlet/internal/why"
)

// MountPointError reports that a tree was not removed because it has a mount point.
type MountPointError struct{ Path string }

func (e *MountPointError) Error() string {
	return fmt.Sprintf("remove %s: something is mounted there", e.Path)
}

// Why returns the class of the error.
func (e *MountPointError) Why() (why.Class, string) { return why.StillMounted, e.Path }

// errBusy reports that a process still writes to the tree.
var errBusy = errors.New("new entries keep appearing in it")

const (
	// removePasses bounds how often one directory is read from its beginning.
	removePasses = 128
	// removeErrors bounds how many failures of one tree are reported.
	removeErrors = 32
)

// RemoveAll removes the tree at path. It follows no link and enters no mount point, not even a bind
// mount of the same file system, which a device number does not reveal. The kernel refuses to cross
// the boundary, so there is no race between check and removal. Directories without a mount point
// are removed even if others stay. A missing tree is not an error.
func RemoveAll(path string) error {
	r, err := newRemoval(filepath.Clean(path))
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	r.run()
	return errors.Join(r.errs...)
}

// removal is the removal of one tree. The cursor's top is the parent of the tree.
type removal struct {
	*filetree.Cursor
	path string
	// dirs is the progress in each directory from the top to the current one.
	dirs []progress
	// stuck are directories that could not be emptied. They are not entered again.
	stuck map[filetree.ID]struct{}
	errs  []error
}

// progress is stored for every level of the tree, so it is small.
type progress struct {
	again  bool  // another pass over the directory is needed
	passes uint8 // begun after the first
	failed bool
	skip   bool // could not be emptied before
}

// newRemoval opens the parent of the tree.
func newRemoval(path string) (*removal, error) {
	c, err := openParent(path, filetree.OneMount)
	if err != nil {
		return nil, err
	}
	return &removal{Cursor: c, path: path, stuck: map[filetree.ID]struct{}{}, dirs: []progress{{again: true}}}, nil
}

func (r *removal) current() *progress { return &r.dirs[len(r.dirs)-1] }

func (r *removal) run() {
	for {
		name, ok := r.next()
		switch {
		case ok:
			r.remove(name)
		case r.Depth() == 0:
			return
		default:
			if err := r.leave(); err != nil {
				r.errs = append(r.errs, &os.PathError{Op: "remove", Path: r.path, Err: err})
				return
			}
		}
	}
}

// next is the next entry of the current directory to remove. Removals may move other entries past
// the read position, so the directory is read again until nothing is found.
func (r *removal) next() (string, bool) {
	for !r.current().skip {
		if r.Depth() > 0 {
			e, err := r.Next(context.Background())
			if err == nil {
				return e.Name, true
			}
			if !errors.Is(err, io.EOF) {
				r.fail("", &os.PathError{Op: "read directory", Err: err})
				return "", false
			}
		}
		d := r.current()
		if !d.again {
			return "", false
		}
		if d.passes >= removePasses {
			r.fail(r.topName(), &os.PathError{Op: "empty", Err: errBusy})
			return "", false
		}
		d.again = false
		d.passes++
		if r.Depth() == 0 {
			return r.topName(), true // the only entry of the parent to remove
		}
		if err := r.Rewind(); err != nil {
			r.fail("", &os.PathError{Op: "read directory", Err: err})
			return "", false
		}
	}
	return "", false
}

// topName is the name of the tree while the parent is the current directory, else "".
func (r *removal) topName() string {
	if r.Depth() > 0 {
		return ""
	}
	return filepath.Base(r.path)
}

// remove removes the entry, or enters it if it is a directory that is not empty.
func (r *removal) remove(name string) {
	switch err := unlink(r.FD(), name); {
	case err == nil:
		r.current().again = true
	case errors.Is(err, unix.ENOENT): // removed by another process
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		r.enter(name)
	case errors.Is(err, unix.EBUSY):
		r.fail(name, &MountPointError{})
	default:
		r.fail(name, &os.PathError{Op: "remove", Err: err})
	}
}

// unlink removes a file, a link or an empty directory.
func unlink(parent int, name string) error {
	err := unix.Unlinkat(parent, name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		if as := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); !errors.Is(as, unix.ENOTDIR) {
			err = as
		}
	}
	return err
}

func (r *removal) enter(name string) {
	switch err := r.Enter(name); {
	case err == nil:
		_, stuck := r.stuck[r.ID()]
		r.dirs = append(r.dirs, progress{failed: stuck, skip: stuck})
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		r.current().again = true // it was replaced meanwhile
	case errors.Is(err, unix.EXDEV):
		r.fail(name, &MountPointError{})
	default:
		r.fail(name, &os.PathError{Op: "open", Err: err})
	}
}

// leave returns to the parent and removes the emptied directory.
func (r *removal) leave() error {
	name, id, failed := r.Name(), r.ID(), r.current().failed
	if err := r.Leave(); err != nil {
		return err
	}
	r.dirs = r.dirs[:len(r.dirs)-1]
	if failed {
		r.stuck[id] = struct{}{}
		r.current().failed = true
		return nil
	}
	r.current().again = true // for new entries, and if the name is no longer known
	if name == "" {
		return nil
	}
	if err := unix.Unlinkat(r.FD(), name, unix.AT_REMOVEDIR); errors.Is(err, unix.EBUSY) {
		r.fail(name, &MountPointError{})
	}
	return nil // the next pass finds any other failure again
}

// fail records an error of an entry of the current directory, or of the directory itself.
func (r *removal) fail(name string, err error) {
	r.current().failed = true
	path := r.Path(name)
	switch err := err.(type) {
	case *MountPointError:
		err.Path = path
	case *os.PathError:
		err.Path = path
	}
	if len(r.errs) >= removeErrors {
		return
	}
	for _, known := range r.errs {
		if known.Error() == err.Error() {
			return // from an earlier pass
		}
	}
	r.errs = append(r.errs, err)
}
