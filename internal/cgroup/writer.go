package cgroup

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fs"
	"github.com/opencontainers/cgroups/fs2"
)

// writer makes groups and sets their bounds.
type writer interface {
	// create makes the group, and those above it, and sets its bounds.
	create(n name, r Resources) error
	// set changes the bounds of a group that exists.
	set(n name, r Resources) error
	// forget tells whoever else keeps a record that the group's directories are gone.
	forget(n name) error
}

// directories is the cgroupfs driver.
type directories struct{ Hierarchy }

func (d directories) create(n name, r Resources) error {
	config := d.config(n, r)
	if d.Version == 2 {
		if err := d.makeUnified(config.Path); err != nil {
			return fmt.Errorf("create cgroup %s: %w", config.Path, err)
		}
	} else {
		m, err := fs.NewManager(config, d.dirs(config.Path))
		if err != nil {
			return fmt.Errorf("create cgroup %s: %w", config.Path, err)
		}
		// With pid -1 this makes the directories and moves no process.
		if err := m.Apply(-1); err != nil {
			return fmt.Errorf("create cgroup %s: %w", config.Path, err)
		}
	}
	return d.set(n, r)
}

func (d directories) set(n name, r Resources) error {
	config := d.config(n, r)
	var m cgroups.Manager
	var err error
	if d.Version == 2 {
		m, err = fs2.NewManager(config, d.Mounts[""]+config.Path)
	} else {
		m, err = fs.NewManager(config, d.dirs(config.Path))
	}
	if err != nil {
		return fmt.Errorf("set cgroup %s: %w", config.Path, err)
	}
	if err := m.Set(config.Resources); err != nil {
		return fmt.Errorf("set cgroup %s: %w", config.Path, err)
	}
	return nil
}

func (d directories) forget(name) error { return nil }

func (d directories) config(n name, r Resources) *cgroups.Cgroup {
	return &cgroups.Cgroup{Path: n.path(Cgroupfs), Resources: d.resources(r)}
}

// makeUnified makes a v2 directory with all controllers passed down to it.
func (d directories) makeUnified(path string) error {
	current := d.Mounts[""]
	available, err := controllers(current)
	if err != nil {
		return err
	}
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if err := passDown(current, available); err != nil {
			return err
		}
		current += "/" + part
		if err := os.Mkdir(current, 0o755); err != nil && !os.IsExist(err) {
			return err
		}
	}
	return nil
}

// passDown enables the controllers for dir's children, as far as the kernel lets us: in a
// container some are withheld, which shows when a bound that needs one is set.
func passDown(dir string, available []string) error {
	enabled, err := cgroups.ReadFile(dir, "cgroup.subtree_control")
	if err != nil {
		return err
	}
	var missing []string
	for _, c := range available {
		if !slices.Contains(strings.Fields(enabled), c) {
			missing = append(missing, "+"+c)
		}
	}
	if len(missing) == 0 || cgroups.WriteFile(dir, "cgroup.subtree_control", strings.Join(missing, " ")) == nil {
		return nil
	}
	for _, c := range missing {
		_ = cgroups.WriteFile(dir, "cgroup.subtree_control", c)
	}
	return nil
}

func controllers(dir string) ([]string, error) {
	text, err := cgroups.ReadFile(dir, "cgroup.controllers")
	if err != nil {
		return nil, err
	}
	return strings.Fields(text), nil
}

// resources translates to the library's form.
func (h Hierarchy) resources(r Resources) *cgroups.Resources {
	to := &cgroups.Resources{
		Memory:    r.Memory,
		CpuQuota:  r.CPUQuota,
		CpuPeriod: r.CPUPeriod,
		// Devices and freezing are the runtime's business, and would break on groups
		// that hold running containers.
		SkipDevices:     true,
		SkipFreezeOnSet: true,
	}
	if h.Version == 2 {
		to.CpuWeight = weight(r.CPUShares)
		to.Unified = unified(r)
	} else {
		to.CpuShares = r.CPUShares
	}
	if r.PIDs != 0 {
		to.PidsLimit = &r.PIDs
	}
	if h.hasHugetlb() {
		for _, size := range cgroups.HugePageSizes() {
			to.HugetlbLimit = append(to.HugetlbLimit, &cgroups.HugepageLimit{Pagesize: size})
		}
		for size, limit := range r.Hugepages {
			size := pageSizeName(size)
			i := slices.IndexFunc(to.HugetlbLimit, func(l *cgroups.HugepageLimit) bool { return l.Pagesize == size })
			if i >= 0 { // a size the kernel does not have is not bounded, nor can it be used
				to.HugetlbLimit[i].Limit = uint64(limit)
			}
		}
	}
	return to
}

// unified are the files of v2 that the library has no field for.
func unified(r Resources) map[string]string {
	files := map[string]string{}
	for file, bound := range map[string]struct {
		amount int64
		none   string
	}{"memory.min": {r.MemoryMin, "0"}, "memory.low": {r.MemoryLow, "0"}, "memory.high": {r.MemoryHigh, "max"}} {
		switch {
		case bound.amount > 0:
			files[file] = strconv.FormatInt(bound.amount, 10)
		case bound.amount < 0:
			files[file] = bound.none
		}
	}
	return files
}

func (h Hierarchy) hasHugetlb() bool {
	if h.Version != 2 {
		return h.Mounts["hugetlb"] != ""
	}
	available, err := controllers(h.Mounts[""])
	return err == nil && slices.Contains(available, "hugetlb")
}
