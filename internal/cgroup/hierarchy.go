package cgroup

import (
	"fmt"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

// Hierarchy is where the kernel's cgroup trees are mounted.
type Hierarchy struct {
	// Version is 1 (also for a hybrid layout, where the controllers are on v1) or 2.
	Version int
	// Mounts maps a controller to the mount point of its tree. The names are those of runc:
	// "name=systemd" is systemd's own tree, "" the v2 tree, which is the only one on v2 and has
	// no controllers in a hybrid layout.
	Mounts map[string]string
}

const mountRoot = "/sys/fs/cgroup"

// Detect returns the running kernel's hierarchy. It follows the rules of runc, so that both use
// the same directory for the same cgroup. Cgroup paths start at the root of each mount, not at
// the cgroup of this process.
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

// dirs returns the directories of a cgroup by controller.
func (h Hierarchy) dirs(path string) map[string]string {
	all := make(map[string]string, len(h.Mounts))
	for controller, mount := range h.Mounts {
		all[controller] = mount + path
	}
	return all
}

// primaryDir returns the directory whose existence is taken for that of the whole cgroup.
func (h Hierarchy) primaryDir(path string) string {
	if h.Version == 2 {
		return h.Mounts[""] + path
	}
	return h.Mounts["memory"] + path
}

// CanLimitSwap reports whether the kernel can limit the swap of a cgroup: it may be built
// without.
func (h Hierarchy) CanLimitSwap() bool {
	if h.Version == 1 {
		return unix.Access(h.Mounts["memory"]+"/memory.memsw.limit_in_bytes", unix.F_OK) == nil
	}
	// On v2 the root cgroup has no such file; every other one with the memory controller has.
	own, err := cgroups.ParseCgroupFile("/proc/self/cgroup")
	if err != nil {
		return false
	}
	return unix.Access(h.Mounts[""]+own[""]+"/memory.swap.max", unix.F_OK) == nil
}
