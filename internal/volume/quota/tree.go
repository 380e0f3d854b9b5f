package quota

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"swiftlet/internal/filetree"
)

// openDir opens a directory; the last element of its path must not be a symbolic link.
func openDir(dir string) (*os.File, error) {
	return os.OpenFile(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// setProjectBelow moves all files below the open directory, which is in the project, to it. The pod
// may be running and change the tree: no link is followed, no mount entered, and files created
// meanwhile inherit the project. Links and special files use no space and are skipped.
func setProjectBelow(dir *os.File, id uint32) error {
	top, err := filetree.OpenAt(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir.Name(), Err: err}
	}
	c, err := filetree.New(top, dir.Name(), filetree.OneMount)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		e, err := c.Next(context.Background())
		switch {
		case errors.Is(err, io.EOF) && c.Depth() == 0:
			return nil
		case errors.Is(err, io.EOF):
			err = c.Leave()
		case err == nil:
			err = setProjectOfEntry(c, e, id)
		}
		if err != nil {
			return fmt.Errorf("walk %s: %w", dir.Name(), err)
		}
	}
}

// setProjectOfEntry moves an entry of the current directory to the project. A directory becomes
// the current one.
func setProjectOfEntry(c *filetree.Cursor, e filetree.Entry, id uint32) error {
	switch c.TypeOf(e) {
	case unix.DT_REG:
		return setProjectOfFile(c, e.Name, id)
	case unix.DT_DIR:
		if err := c.Enter(e.Name); err != nil {
			return unlessGone(c, e.Name, err)
		}
		if err := setProject(c.FD(), id, true); err != nil {
			return fmt.Errorf("set project of %s to %d: %w", c.Path(""), id, err)
		}
	}
	return nil
}

func setProjectOfFile(c *filetree.Cursor, name string, id uint32) error {
	// O_NONBLOCK: the file may have been replaced with a FIFO.
	fd, err := filetree.OpenAt(c.FD(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY,
		unix.RESOLVE_BENEATH|unix.RESOLVE_NO_XDEV|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return unlessGone(c, name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: c.Path(name), Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	if err := setProject(fd, id, false); err != nil {
		return fmt.Errorf("set project of %s to %d: %w", c.Path(name), id, err)
	}
	return nil
}

// unlessGone ignores the error of an entry that was removed or replaced, or is a mount point.
func unlessGone(c *filetree.Cursor, name string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EXDEV):
		return nil
	}
	return &os.PathError{Op: "open", Path: c.Path(name), Err: err}
}
