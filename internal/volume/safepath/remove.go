package safepath

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MountPointError says that a tree was not removed because something is mounted in it.
type MountPointError struct{ Path string }

func (e *MountPointError) Error() string {
	return fmt.Sprintf("remove %s: something is mounted there", e.Path)
}

// removeBatch bounds how many names of a large folder are held at once.
const removeBatch = 1024

// RemoveAll removes the tree at path and nothing else: it follows no link and enters no
// mount point, not even one of the same file system, which a device number would not show.
// The kernel refuses the step over the boundary, so there is no moment between check and
// removal. Parts that hold no mount are removed even if others stay. No tree is no error.
func RemoveAll(path string) error {
	path = filepath.Clean(path)
	parent, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	defer unix.Close(parent)
	return removeAt(parent, filepath.Base(path), path)
}

// removeAt removes name from the open folder; path is for messages.
func removeAt(parent int, name, path string) error {
	switch err := unix.Unlinkat(parent, name, 0); {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EBUSY):
		return &MountPointError{path}
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM):
		return &os.PathError{Op: "unlink", Path: path, Err: err}
	}
	fd, err := openat2(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW,
		unix.RESOLVE_BENEATH|unix.RESOLVE_NO_XDEV|unix.RESOLVE_NO_SYMLINKS)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EXDEV):
		return &MountPointError{path}
	case err != nil:
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	dir := os.NewFile(uintptr(fd), path)
	err = emptyDir(dir)
	dir.Close()
	if err != nil {
		return err
	}
	switch err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EBUSY):
		return &MountPointError{path}
	default:
		return &os.PathError{Op: "rmdir", Path: path, Err: err}
	}
}

// emptyDir removes all that the open folder holds.
func emptyDir(dir *os.File) error {
	for {
		names, err := dir.Readdirnames(removeBatch)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(names) == 0 {
			return nil
		}
		var failed []error
		for _, name := range names {
			if err := removeAt(int(dir.Fd()), name, filepath.Join(dir.Name(), name)); err != nil {
				failed = append(failed, err)
			}
		}
		if len(failed) > 0 {
			return errors.Join(failed...)
		}
		// Removing entries moves the others; start over until nothing is left.
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}
