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

// Beneath lists the mount points at and below dir in the order in which they can be
// unmounted: what lies deeper, or was mounted later on the same place, comes first.
func (k *Kernel) Beneath(dir string) ([]string, error) {
	// The table holds resolved paths; the root of the pods may itself be a link.
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

// UnmountBeneath takes away everything mounted at and below dir. A mount that does not let
// go keeps those that lie above it, and no others.
func (k *Kernel) UnmountBeneath(dir string) error {
	points, err := k.Beneath(dir)
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
	// Unmount forgives a path that is no mount point, so look again instead of trusting it.
	left, err := k.Beneath(dir)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("unmount below %s: still mounted: %s", dir, strings.Join(left, ", "))
	}
	return nil
}

// Twin finds, at or below dir, the mount of the file system that is also mounted at path; ""
// where there is none. It asks the mount table alone: the file system may not answer.
func (k *Kernel) Twin(path, dir string) (string, error) {
	all, err := k.Twins(path, dir)
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0], nil
}

// Twins finds all such mounts: several volumes may be parts of one file system.
func (k *Kernel) Twins(path, dir string) ([]string, error) {
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
	last := slices.Backward(table) // the topmost of several comes last
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

// realParent resolves links on the way to path, but asks nothing of what is mounted there.
func realParent(path string) (string, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil // then nothing is mounted there, either
	}
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", path, err)
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}
