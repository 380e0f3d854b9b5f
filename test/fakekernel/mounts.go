package fakekernel

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A tmpfs is a directory that is emptied when it is unmounted, and a bind mount an empty mark.

func (v View) mount(call, path string, kind int64) error {
	return v.change(call, path, func() error {
		v.kernel.mounts = append(v.kernel.mounts, mount{path, kind})
		return nil
	})
}

// Tmpfs mounts a tmpfs.
func (v View) Tmpfs(dir string, _ int64) error { return v.mount("Tmpfs", dir, unix.TMPFS_MAGIC) }

// HugePages mounts a hugetlbfs.
func (v View) HugePages(dir, _ string) error {
	return v.mount("HugePages", dir, unix.HUGETLBFS_MAGIC)
}

// Bind mounts what is open as a file descriptor.
func (v View) Bind(_ int, target string) error {
	return v.mount("Bind", target, unix.EXT4_SUPER_MAGIC)
}

// Mounted reports whether something is mounted at a path.
func (v View) Mounted(path string) (bool, error) {
	v.kernel.mu.Lock()
	defer v.kernel.mu.Unlock()
	return slices.ContainsFunc(v.kernel.mounts, func(one mount) bool { return one.path == path }), nil
}

// FileSystem returns the magic number of the file system of a path.
func (v View) FileSystem(path string) (int64, error) {
	v.kernel.mu.Lock()
	defer v.kernel.mu.Unlock()
	for _, one := range slices.Backward(v.kernel.mounts) {
		if path == one.path || strings.HasPrefix(path, one.path+"/") {
			return one.kind, nil
		}
	}
	return unix.EXT4_SUPER_MAGIC, nil
}

// Unmount does nothing where nothing is mounted.
func (v View) Unmount(path string) error {
	return v.change("Unmount", path, func() error {
		i := slices.IndexFunc(v.kernel.mounts, func(one mount) bool { return one.path == path })
		if i < 0 {
			return nil
		}
		if v.kernel.mounts[i].kind == unix.TMPFS_MAGIC {
			if err := empty(path); err != nil {
				return err
			}
		}
		v.kernel.mounts = slices.Delete(v.kernel.mounts, i, i+1)
		return nil
	})
}

func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // a file
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}

// ForceUnmount is Unmount.
func (v View) ForceUnmount(path string) error { return v.Unmount(path) }

// MountPoints lists the mounts at and below a directory, deepest first.
func (v View) MountPoints(dir string) ([]string, error) {
	all := v.kernel.MountPoints(dir)
	slices.SortStableFunc(all, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	return all, nil
}

// SameFilesystemMount finds none.
func (v View) SameFilesystemMount(string, string) (string, error) { return "", nil }

// UnmountBeneath unmounts all mounts at and below a directory.
func (v View) UnmountBeneath(dir string) error {
	var errs []error
	points, _ := v.MountPoints(dir)
	for _, path := range points {
		errs = append(errs, v.Unmount(path))
	}
	return errors.Join(errs...)
}
