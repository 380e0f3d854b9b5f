package standalone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"k8s.io/utils/clock"

	"swiftlet/internal/cgroup"
)

// cgroupName is the cgroup that holds all pods. It keeps them apart from the pods of another
// kubelet on the host.
const cgroupName = "swiftlet"

// cgroupRoots lists the mounted cgroup hierarchies: one for v2, one per controller for v1.
func cgroupRoots() ([]string, error) {
	mounts, err := mountinfo.GetMounts(cgroupMounts)
	if err != nil {
		return nil, fmt.Errorf("read mount table: %w", err)
	}
	var roots []string
	for _, m := range mounts {
		// A mount that another mount hides is still in the table.
		hidden := !exists(filepath.Join(m.Mountpoint, "cgroup.procs"))
		if !hidden && !slices.Contains(roots, m.Mountpoint) {
			roots = append(roots, m.Mountpoint)
		}
	}
	return roots, nil
}

// cgroupMounts selects the cgroup mounts below /sys/fs/cgroup.
func cgroupMounts(m *mountinfo.Info) (skip, stop bool) {
	isCgroup := m.FSType == "cgroup" || m.FSType == "cgroup2"
	return !isCgroup || !strings.HasPrefix(m.Mountpoint, "/sys/fs/cgroup"), false
}

// makeCgroups creates the cgroup that agentConfig sets as cgroupRoot. On v1 a new cpuset is
// empty and does not inherit its parent's CPUs and memory nodes, so they are copied.
func makeCgroups() error {
	roots, err := cgroupRoots()
	if err != nil {
		return err
	}
	for _, root := range roots {
		dir := filepath.Join(root, cgroupName)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make cgroup: %w", err)
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := inheritCpuset(root, dir, file); err != nil {
				return fmt.Errorf("make cgroup: %w", err)
			}
		}
		// On v2 a controller works in a cgroup only if its parent delegates it. Failures are
		// ignored: the agent checks which controllers it needs.
		if available, err := os.ReadFile(filepath.Join(root, "cgroup.controllers")); err == nil {
			for _, c := range strings.Fields(string(available)) {
				for _, d := range []string{root, dir} {
					_ = os.WriteFile(filepath.Join(d, "cgroup.subtree_control"), []byte("+"+c), 0o644)
				}
			}
		}
	}
	return nil
}

func inheritCpuset(parent, child, file string) error {
	if _, err := os.Stat(filepath.Join(parent, "cgroup.clone_children")); err != nil {
		return nil // v2 inherits
	}
	value, err := os.ReadFile(filepath.Join(parent, file))
	if err != nil {
		return nil // not the cpuset hierarchy
	}
	return os.WriteFile(filepath.Join(child, file), value, 0o644)
}

// cgroupKillTimeout is how long killed processes may take to exit.
const cgroupKillTimeout = 10 * time.Second

// removeCgroups kills the processes that are left in the cgroup and removes it.
func removeCgroups(clock clock.Clock) error {
	roots, err := cgroupRoots()
	if err != nil {
		return err
	}
	for i, root := range roots {
		roots[i] = filepath.Join(root, cgroupName)
	}
	ctx, cancel := context.WithTimeout(context.Background(), cgroupKillTimeout)
	defer cancel()
	return cgroup.RemoveAll(ctx, clock, roots)
}
