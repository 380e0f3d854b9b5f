package safepath

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"swiftlet/internal/filetree"
)

// openParent returns a cursor at the parent of path.
func openParent(path string, scope filetree.Scope) (*filetree.Cursor, error) {
	parent := filepath.Dir(path)
	fd, err := unix.Open(parent, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: parent, Err: err}
	}
	return filetree.New(fd, parent, scope)
}

// Walk calls visit with a descriptor of everything below dir, then of dir itself; a directory comes
// after its entries. It follows no link, even if a pod replaces a directory with one meanwhile, and
// skips what is removed meanwhile. The descriptor may be opened with O_PATH; it is closed after the
// call.
func Walk(dir string, visit func(fd int)) error {
	dir = filepath.Clean(dir)
	c, err := openParent(dir, filetree.AllMounts)
	if err != nil {
		return err
	}
	defer c.Close()
	e := filetree.Entry{Name: filepath.Base(dir), Type: unix.DT_UNKNOWN}
	if err := enterOrVisit(c, e, visit); err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	for c.Depth() > 0 {
		e, err := c.Next(context.Background())
		switch {
		case errors.Is(err, io.EOF):
			visit(c.FD())
			if err := c.Leave(); err != nil {
				return &os.PathError{Op: "walk", Path: dir, Err: err}
			}
		case err != nil:
			return &os.PathError{Op: "read directory", Path: c.Path(""), Err: err}
		default:
			if err := enterOrVisit(c, e, visit); err != nil {
				return &os.PathError{Op: "open", Path: c.Path(e.Name), Err: err}
			}
		}
	}
	return nil
}

// enterOrVisit enters the entry if it is a directory, and visits it otherwise.
func enterOrVisit(c *filetree.Cursor, e filetree.Entry, visit func(fd int)) error {
	if e.Type == unix.DT_DIR || e.Type == unix.DT_UNKNOWN {
		err := c.Enter(e.Name)
		if !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
			return unlessGone(err)
		}
	}
	fd, err := unix.Openat(c.FD(), e.Name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return unlessGone(err)
	}
	visit(fd)
	return unix.Close(fd)
}

// unlessGone ignores the error of a file that no longer exists.
func unlessGone(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
