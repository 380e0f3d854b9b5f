package safepath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MountPointError says that a tree was not removed because something is mounted in it.
type MountPointError struct{ Path string }

func (e *MountPointError) Error() string {
	return fmt.Sprintf("remove %s: something is mounted there", e.Path)
}

// errBusy says that what is removed is still being written to.
var errBusy = errors.New("new entries keep appearing in it")

const (
	// removePasses bounds how often one folder is read from its beginning.
	removePasses = 128
	// removeErrors bounds how many failures are told of one tree.
	removeErrors = 32
)

// RemoveAll removes the tree at path and nothing else: it follows no link and enters no
// mount point, not even one of the same file system, which a device number would not show.
// The kernel refuses the step over the boundary, so there is no moment between check and
// removal. Parts that hold no mount are removed even if others stay. No tree is no error.
//
// The tree is a pod's own and may be as deep as it likes: what is held open and in memory
// does not grow with it, but for a few bytes per folder on the way down.
func RemoveAll(path string) error {
	path = filepath.Clean(path)
	parent, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	r := removal{path: path, way: newDescent(parent, unix.RESOLVE_NO_XDEV), stuck: map[identity]struct{}{}}
	defer r.way.close()
	r.run()
	return errors.Join(r.failed...)
}

// removal is one tree on its way out.
type removal struct {
	path string
	way  *descent
	// stuck are folders that could not be emptied: they are not entered again.
	stuck  map[identity]struct{}
	failed []error
}

func (r *removal) run() {
	for {
		dir := r.way.last()
		name, ok := r.next(dir)
		switch {
		case ok:
			r.remove(dir, name)
		case r.way.atTop():
			return
		default:
			if err := r.leave(dir); err != nil {
				r.failed = append(r.failed, err)
				return
			}
		}
	}
}

// next is an entry of the folder to remove. Removing entries may move others past the
// reader, so the folder is read again until that finds none to remove.
func (r *removal) next(dir *folder) (string, bool) {
	for {
		if e, ok := dir.take(); ok {
			return e.name, true
		}
		if !r.way.atTop() {
			if err := r.way.read(dir); err != nil {
				r.fail(dir, "", &os.PathError{Op: "read folder", Err: err})
				return "", false
			}
			if len(dir.entries) > 0 {
				continue
			}
		}
		if !dir.pass() {
			if dir.again {
				r.fail(dir, "", &os.PathError{Op: "empty", Err: errBusy})
			}
			return "", false
		}
		if r.way.atTop() {
			return filepath.Base(r.path), true
		}
		if _, err := unix.Seek(dir.fd, 0, unix.SEEK_SET); err != nil {
			r.fail(dir, "", &os.PathError{Op: "read folder", Err: err})
			return "", false
		}
	}
}

// remove takes the entry away, or goes into it first if it is a folder that holds something.
func (r *removal) remove(dir *folder, name string) {
	switch err := unlink(dir.fd, name); {
	case err == nil:
		dir.again = true
	case errors.Is(err, unix.ENOENT): // somebody else did it
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		r.enter(dir, name)
	case errors.Is(err, unix.EBUSY):
		r.fail(dir, name, &MountPointError{})
	default:
		r.fail(dir, name, &os.PathError{Op: "remove", Err: err})
	}
}

// unlink removes a file, a link or an empty folder.
func unlink(parent int, name string) error {
	err := unix.Unlinkat(parent, name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		if as := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); !errors.Is(as, unix.ENOTDIR) {
			err = as
		}
	}
	return err
}

func (r *removal) enter(dir *folder, name string) {
	err := r.way.enter(name, func(id identity) bool { _, stuck := r.stuck[id]; return stuck })
	switch {
	case err == nil:
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		dir.again = true // something else is there by now
	case errors.Is(err, unix.EXDEV):
		r.fail(dir, name, &MountPointError{})
	default:
		r.fail(dir, name, &os.PathError{Op: "open", Err: err})
	}
}

// leave goes back to the folder above and removes the one that was emptied.
func (r *removal) leave(dir *folder) error {
	if err := r.way.pop(); err != nil {
		return &os.PathError{Op: "remove", Path: r.path, Err: err}
	}
	above := r.way.last()
	if dir.failed {
		r.stuck[dir.id] = struct{}{}
		above.failed = true
		return nil
	}
	above.again = true // for what a pod put there meanwhile, and where the name is forgotten
	if dir.name == "" {
		return nil
	}
	err := unix.Unlinkat(above.fd, dir.name, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.EBUSY) {
		r.fail(above, dir.name, &MountPointError{})
	}
	return nil // any other failure is met again by the next pass
}

// fail notes what went wrong with an entry of the folder, or with the folder itself.
func (r *removal) fail(dir *folder, name string, err error) {
	dir.failed = true
	path := r.way.pathOf(r.path, dir, name)
	switch err := err.(type) {
	case *MountPointError:
		err.Path = path
	case *os.PathError:
		err.Path = path
	}
	if len(r.failed) >= removeErrors {
		return
	}
	for _, told := range r.failed {
		if told.Error() == err.Error() {
			return // met before, in an earlier pass
		}
	}
	r.failed = append(r.failed, err)
}
