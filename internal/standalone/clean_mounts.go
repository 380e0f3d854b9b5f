package standalone

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// removeUnmounted removes the folder unless something is mounted in it: what is behind a
// mount may be anybody's.
func removeUnmounted(folder string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("read the mount table: %w", err)
	}
	if still := mountsBelow(string(table), []string{folder}); len(still) > 0 {
		return fmt.Errorf("remove %s: %s is still mounted", folder, strings.Join(still, ", "))
	}
	return os.RemoveAll(folder)
}

// unmountBelow unmounts everything below the folders, the innermost first. A mount that
// is still busy is detached: what keeps it is about to be gone.
func unmountBelow(folders ...string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("read the mount table: %w", err)
	}
	var problems []error
	for _, point := range slices.Backward(mountsBelow(string(table), folders)) {
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

// mountsBelow lists the mount points strictly below the folders, in mounting order. A
// folder that is itself a mount point was made so by someone else and stays.
func mountsBelow(mountinfo string, folders []string) []string {
	var points []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescape(fields[4])
		if slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(point, f+"/") }) {
			points = append(points, point)
		}
	}
	return points
}

// unescape undoes the octal escapes the kernel writes for blanks and the like.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
