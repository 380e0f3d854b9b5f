package quota

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// batch bounds how many names of a large folder are held at once.
const batch = 1024

// openDir opens a folder to ask about it; the last part of its path is not followed.
func openDir(dir string) (*os.File, error) {
	return os.OpenFile(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// includeBelow puts all files below the open folder, which is in the project already, into it.
// The pod may run and change the tree: no link is followed, no mount entered, and what is made
// meanwhile inherits the project. Links and special files take no space, and stay out.
func includeBelow(dir *os.File, id uint32) error {
	for {
		entries, err := dir.ReadDir(batch)
		for _, e := range entries {
			if !e.IsDir() && !e.Type().IsRegular() {
				continue
			}
			if err := includeAt(dir, e.Name(), e.IsDir(), id); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("walk %s: %w", dir.Name(), err)
		}
	}
}

// includeAt puts one entry of an open folder into the project, and all below it.
func includeAt(dir *os.File, name string, folder bool, id uint32) error {
	how := unix.OpenHow{
		// Not blocking: what was a file may be a pipe by now.
		Flags:   unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS,
	}
	if folder {
		how.Flags |= unix.O_DIRECTORY
	}
	fd, err := unix.Openat2(int(dir.Fd()), name, &how)
	for errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) { // somebody renames
		fd, err = unix.Openat2(int(dir.Fd()), name, &how)
	}
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EXDEV):
		return nil // gone, exchanged, or not the volume's
	case err != nil:
		return &os.PathError{Op: "open", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	f := os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name))
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return nil
	}
	if err := include(f, id, folder); err != nil || !folder {
		return err
	}
	return includeBelow(f, id)
}
