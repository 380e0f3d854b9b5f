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

	"swiftlet/internal/cgroup"
)

// cgroupName is the group below which all pods live: beside, not among, those of another
// kubelet on the machine.
const cgroupName = "swiftlet"

// cgroupRoots lists the mounted hierarchies: one for cgroup v2, one per controller for v1.
func cgroupRoots() ([]string, error) {
	mounts, err := mountinfo.GetMounts(cgroupMounts)
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	var roots []string
	for _, m := range mounts {
		// A mount that another one hides is still in the table.
		hidden := !exists(filepath.Join(m.Mountpoint, "cgroup.procs"))
		if !hidden && !slices.Contains(roots, m.Mountpoint) {
			roots = append(roots, m.Mountpoint)
		}
	}
	return roots, nil
}

// cgroupMounts is the filter for the hierarchies in their usual place.
func cgroupMounts(m *mountinfo.Info) (skip, stop bool) {
	ofCgroups := m.FSType == "cgroup" || m.FSType == "cgroup2"
	return !ofCgroups || !strings.HasPrefix(m.Mountpoint, "/sys/fs/cgroup"), false
}

// makeCgroups makes the group the agent is told to root its tree in. A v1 cpuset is
// useless until it is filled, and its children copy it only when told.
func makeCgroups() error {
	roots, err := cgroupRoots()
	if err != nil {
		return err
	}
	for _, root := range roots {
		dir := filepath.Join(root, cgroupName)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make the cgroup: %w", err)
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := inheritCpuset(root, dir, file); err != nil {
				return fmt.Errorf("make the cgroup: %w", err)
			}
		}
		// Delegating is what makes controllers appear in the group, on v2 alone; a
		// controller that cannot be had (an RT process runs, say) is the agent's to judge.
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
		return nil // v2 inherits by itself
	}
	value, err := os.ReadFile(filepath.Join(parent, file))
	if err != nil {
		return nil // not the cpuset hierarchy
	}
	return os.WriteFile(filepath.Join(child, file), value, 0o644)
}

// lingering is how long killed processes may take to leave.
const lingering = 10 * time.Second

// removeCgroups kills what is still in the group and removes it.
func removeCgroups() error {
	roots, err := cgroupRoots()
	if err != nil {
		return err
	}
	for i, root := range roots {
		roots[i] = filepath.Join(root, cgroupName)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lingering)
	defer cancel()
	return cgroup.RemoveAll(ctx, roots)
}
