package standalone

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"swiftlet/internal/volume/safepath"
)

// removeUnmounted removes the folder unless something is mounted in it: what is behind a
// mount may be anybody's.
func removeUnmounted(folder string) error {
	mounts, err := mountinfo.GetMounts(mountsBelow(folder))
	if err != nil {
		return fmt.Errorf("read the mount table: %w", err)
	}
	if len(mounts) > 0 {
		return fmt.Errorf("remove %s: %s is still mounted", folder, strings.Join(pointsOf(mounts), ", "))
	}
	return safepath.RemoveAll(folder)
}

// unmountBelow unmounts everything below the folders, the innermost first. A mount that
// is still busy is detached: what keeps it is about to be gone.
func unmountBelow(folders ...string) error {
	mounts, err := mountinfo.GetMounts(mountsBelow(folders...))
	if err != nil {
		return fmt.Errorf("read the mount table: %w", err)
	}
	var problems []error
	for _, point := range slices.Backward(pointsOf(mounts)) {
		err := unix.Unmount(point, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EBUSY) {
			err = unix.Unmount(point, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
		}
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			problems = append(problems, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(problems...)
}

// mountsBelow is the filter for mount points strictly below the folders. A folder that is
// itself a mount point was made so by someone else and stays.
func mountsBelow(folders ...string) mountinfo.FilterFunc {
	return func(m *mountinfo.Info) (skip, stop bool) {
		below := func(folder string) bool { return strings.HasPrefix(m.Mountpoint, folder+"/") }
		return !slices.ContainsFunc(folders, below), false
	}
}

// pointsOf lists the mount points, in mounting order.
func pointsOf(mounts []*mountinfo.Info) []string {
	var points []string
	for _, m := range mounts {
		points = append(points, m.Mountpoint)
	}
	return points
}
