package mounts

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// MountPoints lists the mount points at and below dir in the order in which they can be unmounted:
// deeper ones first, and later ones first at the same path.
func (k *Kernel) MountPoints(dir string) ([]string, error) {
	// The mount table has resolved paths; the root directory may be a symbolic link.
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", dir, err)
	}
	found, err := mountinfo.GetMounts(mountinfo.PrefixFilter(real))
	if err != nil {
		return nil, fmt.Errorf("read mount table: %w", err)
	}
	points := make([]string, 0, len(found))
	for _, m := range slices.Backward(found) {
		points = append(points, m.Mountpoint)
	}
	slices.SortStableFunc(points, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	return points, nil
}

// UnmountBeneath unmounts everything at and below dir. A busy mount keeps the mounts above it
// mounted, and no others.
func (k *Kernel) UnmountBeneath(dir string) error {
	points, err := k.MountPoints(dir)
	if err != nil {
		return err
	}
	var busy []string
	var failed []error
	for _, point := range points {
		if slices.ContainsFunc(busy, func(b string) bool { return b == point || strings.HasPrefix(b, point+"/") }) {
			continue
		}
		if err := k.Unmount(point); err != nil {
			busy, failed = append(busy, point), append(failed, err)
		}
	}
	if len(points) == 0 || len(failed) > 0 {
		return errors.Join(failed...)
	}
	// Unmount ignores a path that is not a mount point, so check again.
	left, err := k.MountPoints(dir)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("unmount below %s: still mounted: %s", dir, strings.Join(left, ", "))
	}
	return nil
}

// SameFilesystemMount finds a mount point below dir of the file system that is mounted at path; "" if
// there is none. It reads the mount table only: the file system may hang.
func (k *Kernel) SameFilesystemMount(path, dir string) (string, error) {
	all, err := k.SameFilesystemMounts(path, dir)
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0], nil
}

// SameFilesystemMounts finds all such mount points: several volumes may share one file system.
func (k *Kernel) SameFilesystemMounts(path, dir string) ([]string, error) {
	table, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, fmt.Errorf("read mount table: %w", err)
	}
	if path, err = realParent(path); err != nil {
		return nil, err
	}
	if dir, err = realParent(dir); err != nil {
		return nil, err
	}
	last := slices.Backward(table) // the topmost of several is the last
	for _, m := range last {
		if m.Mountpoint != path {
			continue
		}
		var all []string
		for _, other := range last {
			if other.Major == m.Major && other.Minor == m.Minor && strings.HasPrefix(other.Mountpoint, dir+"/") {
				all = append(all, other.Mountpoint)
			}
		}
		return all, nil
	}
	return nil, nil
}

// realParent resolves symbolic links in the parent of path and does not access path itself, which
// may hang.
func realParent(path string) (string, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil // then nothing is mounted there
	}
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", path, err)
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}
