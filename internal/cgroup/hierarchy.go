package cgroup

import (
	"fmt"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

// Hierarchy says where the kernel's cgroup trees are mounted.
type Hierarchy struct {
	// Version is 1 (also for a hybrid layout, where the controllers are on v1) or 2.
	Version int
	// Mounts maps a controller to the root of its tree, under the names that runc uses:
	// "name=systemd" for systemd's own, and "" for the v2 tree: the only one on v2, and
	// the one without controllers in a hybrid layout.
	Mounts map[string]string
}

const mountRoot = "/sys/fs/cgroup"

// Detect finds the running kernel's hierarchy, by the same rules as runc, so that both
// mean the same directory by the same group. Groups are named from the root of each
// mount, not from where this process itself happens to be.
func Detect() (Hierarchy, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(mountRoot, &st); err != nil {
		return Hierarchy{}, fmt.Errorf("detect cgroups: statfs %s: %w", mountRoot, err)
	}
	if st.Type == unix.CGROUP2_SUPER_MAGIC {
		return Hierarchy{Version: 2, Mounts: map[string]string{"": mountRoot}}, nil
	}
	mounts, err := cgroups.GetCgroupMounts(true)
	if err != nil {
		return Hierarchy{}, fmt.Errorf("detect cgroups: %w", err)
	}
	h := Hierarchy{Version: 1, Mounts: map[string]string{}}
	for _, m := range mounts {
		for _, controller := range m.Subsystems {
			if controller == "systemd" {
				controller = "name=systemd"
			}
			h.Mounts[controller] = m.Mountpoint
		}
	}
	for _, controller := range []string{"cpu", "memory"} {
		if h.Mounts[controller] == "" {
			return Hierarchy{}, fmt.Errorf("detect cgroups: the %s controller is not mounted", controller)
		}
	}
	if cgroups.IsCgroup2HybridMode() {
		h.Mounts[""] = mountRoot + "/unified"
	}
	return h, nil
}

// dirs are the directories of the named group, one for each tree.
func (h Hierarchy) dirs(path string) map[string]string {
	all := make(map[string]string, len(h.Mounts))
	for controller, mount := range h.Mounts {
		all[controller] = mount + path
	}
	return all
}

// witness is the one directory whose presence stands for the whole group's.
func (h Hierarchy) witness(path string) string {
	if h.Version == 2 {
		return h.Mounts[""] + path
	}
	return h.Mounts["memory"] + path
}

// BoundsSwap reports whether the kernel can bound a group's swap: not every build can.
func (h Hierarchy) BoundsSwap() bool {
	if h.Version == 1 {
		return unix.Access(h.Mounts["memory"]+"/memory.memsw.limit_in_bytes", unix.F_OK) == nil
	}
	// On v2 the root has no such file; any group that has the memory controller does.
	own, err := cgroups.ParseCgroupFile("/proc/self/cgroup")
	if err != nil {
		return false
	}
	return unix.Access(h.Mounts[""]+own[""]+"/memory.swap.max", unix.F_OK) == nil
}
