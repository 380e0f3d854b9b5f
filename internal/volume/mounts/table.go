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

// UnmountBeneath takes away everything mounted at and below dir. It stops at the first
// mount that does not let go, and goes on with none that lies above it.
func (k *Kernel) UnmountBeneath(dir string) error {
	points, err := k.Beneath(dir)
	if err != nil {
		return err
	}
	for _, point := range points {
		if err := k.Unmount(point); err != nil {
			return err
		}
	}
	if len(points) == 0 {
		return nil
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
