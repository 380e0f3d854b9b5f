package cgroup

import (
	"slices"
	"strconv"

	"github.com/opencontainers/cgroups"
)

// writer creates cgroups and sets their limits with one driver.
type writer interface {
	// create creates the cgroup and its parents, and sets its limits.
	create(n cgroupName, r Resources) error
	// set updates the limits of an existing cgroup.
	set(n cgroupName, r Resources) error
	// stopUnit stops the systemd unit of a removed cgroup.
	stopUnit(n cgroupName) error
}

// resources converts r to the type of the cgroups library.
func (h Hierarchy) resources(r Resources) *cgroups.Resources {
	to := &cgroups.Resources{
		Memory:    r.Memory,
		CpuQuota:  r.CPUQuota,
		CpuPeriod: r.CPUPeriod,
		// Devices and freezing are up to the runtime, and would disturb running containers.
		SkipDevices:     true,
		SkipFreezeOnSet: true,
	}
	if h.Version == 2 {
		to.CpuWeight = sharesToWeight(r.CPUShares)
		to.Unified = v2MemoryFiles(r)
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
			if i >= 0 { // skip sizes that the kernel does not support
				to.HugetlbLimit[i].Limit = uint64(limit)
			}
		}
	}
	return to
}

// v2MemoryFiles returns the contents of v2 files that the library has no field for.
func v2MemoryFiles(r Resources) map[string]string {
	files := map[string]string{}
	for file, limit := range map[string]struct {
		amount int64
		unset  string
	}{"memory.min": {r.MemoryMin, "0"}, "memory.low": {r.MemoryLow, "0"}, "memory.high": {r.MemoryHigh, "max"}} {
		switch {
		case limit.amount > 0:
			files[file] = strconv.FormatInt(limit.amount, 10)
		case limit.amount < 0:
			files[file] = limit.unset
		}
	}
	return files
}

func (h Hierarchy) hasHugetlb() bool {
	if h.Version != 2 {
		return h.Mounts["hugetlb"] != ""
	}
	available, err := availableControllers(h.Mounts[""])
	return err == nil && slices.Contains(available, "hugetlb")
}
