package safepath

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Walk calls visit with a handle on everything below dir, then on dir itself; a folder comes
// after what it holds. It follows no link, however fast a pod swaps a folder for one, and
// holds few folders open, however deep they are. What goes meanwhile is left out. The handle
// may be an O_PATH one, and is closed after the call.
func Walk(dir string, visit func(fd int)) error {
	dir = filepath.Clean(dir)
	top, err := unix.Open(filepath.Dir(dir), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(dir), Err: err}
	}
	way := newDescent(top, 0)
	defer way.close()
	if err := way.meet(entry{name: filepath.Base(dir)}, visit); err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	for !way.atTop() {
		f := way.last()
		e, ok := f.take()
		if !ok {
			if err := way.read(f); err != nil {
				return &os.PathError{Op: "read folder", Path: way.pathOf(dir, f, ""), Err: err}
			}
			if e, ok = f.take(); !ok {
				visit(f.fd)
				if err := way.pop(); err != nil {
					return &os.PathError{Op: "walk", Path: dir, Err: err}
				}
				continue
			}
		}
		if err := way.meet(e, visit); err != nil {
			return &os.PathError{Op: "open", Path: way.pathOf(dir, f, e.name), Err: err}
		}
	}
	return nil
}

// meet goes into the entry if it is a folder, and visits it otherwise.
func (d *descent) meet(e entry, visit func(fd int)) error {
	if !e.file {
		err := d.enter(e.name, nil)
		if !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
			return gone(err)
		}
	}
	fd, err := unix.Openat(d.last().fd, e.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return gone(err)
	}
	visit(fd)
	return unix.Close(fd)
}

// gone forgives that there is nothing any more.
func gone(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
