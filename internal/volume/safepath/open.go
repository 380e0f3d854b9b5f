// Package safepath resolves and removes paths that a pod can influence without leaving the directory
// they belong to. It needs openat2(2), Linux 5.6.
package safepath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"swiftlet/internal/filetree"
)

// OpenBeneath opens path below root with O_PATH. It follows symbolic links that end below root, also
// absolute ones; one that ends outside is an error. The caller closes the file.
func OpenBeneath(root *os.File, path string) (*os.File, error) {
	return openBeneath(root, path, unix.O_PATH)
}

// openBeneath has the kernel resolve the path, which stops at links that leave root even if they
// return to it. Such a link is resolved here. It may be replaced meanwhile, so the kernel resolves the
// result again.
func openBeneath(root *os.File, path string, flags int) (*os.File, error) {
	fd, err := openAt(root, path, flags)
	if errors.Is(err, unix.EXDEV) {
		var target string
		if target, err = targetBeneath(root.Name(), path); err == nil {
			fd, err = openAt(root, target, flags)
		}
	}
	if err != nil {
		return nil, &os.PathError{Op: "open beneath " + root.Name(), Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(root.Name(), path)), nil
}

func openAt(root *os.File, path string, flags int) (int, error) {
	return filetree.OpenAt(int(root.Fd()), path, flags, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS)
}

// targetBeneath follows the links of path as the node sees them and returns where they end, relative to
// root. The error is EXDEV if that is outside root.
func targetBeneath(root, path string) (string, error) {
	if !filepath.IsLocal(path) {
		return "", unix.EXDEV
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", err
	}
	target, err := filepath.EvalSymlinks(filepath.Join(root, path))
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(root, target)
	if err != nil || !filepath.IsLocal(relative) {
		return "", unix.EXDEV
	}
	return relative, nil
}

// OpenRoot opens a directory as the root for OpenBeneath. It follows links in dir itself.
func OpenRoot(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open root directory: %w", err)
	}
	return f, nil
}

// MkdirAll creates the missing directories of path below root, with the given mode regardless of the
// umask. It does not change existing ones and creates nothing outside root.
func MkdirAll(root *os.File, path string, mode uint32) error {
	parts := strings.Split(filepath.Clean(path), "/")
	for i := range parts {
		prefix := strings.Join(parts[:i+1], "/")
		f, err := openBeneath(root, prefix, unix.O_PATH|unix.O_DIRECTORY)
		if err == nil {
			f.Close()
			continue
		}
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
		if err := mkdirBeneath(root, strings.Join(parts[:i], "/"), parts[i], mode); err != nil {
			return err
		}
	}
	return nil
}

// mkdirBeneath creates one directory, relative to an open descriptor of its parent.
func mkdirBeneath(root *os.File, parent, name string, mode uint32) error {
	if parent == "" {
		parent = "."
	}
	dir, err := openBeneath(root, parent, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer dir.Close()
	path := filepath.Join(dir.Name(), name)
	err = unix.Mkdirat(int(dir.Fd()), name, mode&0o777)
	if errors.Is(err, unix.EEXIST) {
		return nil // created by another process meanwhile; the next resolution checks it
	}
	if err != nil {
		return &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	fd, err := filetree.OpenAt(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if err := unix.Fchmod(fd, mode); err != nil {
		return &os.PathError{Op: "chmod", Path: path, Err: err}
	}
	return nil
}
