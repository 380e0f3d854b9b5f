package standalone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"swiftlet/internal/contain"
	"swiftlet/internal/volume/safepath"
)

// removeUnmounted removes the directory unless something is mounted below it: the files behind
// a mount may belong to another program.
func removeUnmounted(dir string) error {
	mounts, err := mountinfo.GetMounts(mountsBelow(dir))
	if err != nil {
		return fmt.Errorf("read mount table: %w", err)
	}
	if len(mounts) > 0 {
		return fmt.Errorf("remove %s: %s is still mounted", dir, strings.Join(mountPoints(mounts), ", "))
	}
	return safepath.RemoveAll(dir)
}

// unmountTimeout is how long an unmount may take: the server of a file system may be gone.
const unmountTimeout = 10 * time.Second

// unmountBelow unmounts everything below the directories, innermost first. It detaches busy
// mounts, whose processes are about to exit, and those that hang.
func unmountBelow(dirs ...string) error {
	mounts, err := mountinfo.GetMounts(mountsBelow(dirs...))
	if err != nil {
		return fmt.Errorf("read mount table: %w", err)
	}
	var calls contain.Calls
	unmount := func(what, point string, flags int) error {
		ctx, cancel := context.WithTimeout(context.Background(), unmountTimeout)
		defer cancel()
		return calls.Do(ctx, what+" "+point, func() error { return unix.Unmount(point, unix.UMOUNT_NOFOLLOW|flags) })
	}
	var problems []error
	for _, point := range slices.Backward(mountPoints(mounts)) {
		err := unmount("unmount", point, 0)
		if hang := new(contain.HangError); errors.Is(err, unix.EBUSY) || errors.As(err, &hang) {
			err = unmount("detach", point, unix.MNT_DETACH)
		}
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			problems = append(problems, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(problems...)
}

// mountsBelow selects mount points strictly below the directories. A directory that is itself
// a mount point was mounted by someone else and is kept.
func mountsBelow(dirs ...string) mountinfo.FilterFunc {
	return func(m *mountinfo.Info) (skip, stop bool) {
		below := func(dir string) bool { return strings.HasPrefix(m.Mountpoint, dir+"/") }
		return !slices.ContainsFunc(dirs, below), false
	}
}

// mountPoints lists the mount points in the order in which they were mounted.
func mountPoints(mounts []*mountinfo.Info) []string {
	var points []string
	for _, m := range mounts {
		points = append(points, m.Mountpoint)
	}
	return points
}
