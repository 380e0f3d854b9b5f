package cgroup

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// EnforceReserved limits a cgroup of the system to the cpu, memory and ResourcePID that are
// reserved for it. It does not create the cgroup: a missing one is an error.
func (t *Tree) EnforceReserved(group string, amounts v1.ResourceList) error {
	n := t.parseCgroup(group)
	if missing := t.missingControllers(n); len(missing) > 0 {
		return fmt.Errorf("bound cgroup %s: it does not exist for %s", group, strings.Join(missing, ", "))
	}
	r := Resources{Hugepages: hugepages(amounts)}
	if cpu, ok := amounts[v1.ResourceCPU]; ok {
		r.CPUShares = Shares(cpu.MilliValue())
	}
	if memory, ok := amounts[v1.ResourceMemory]; ok {
		r.Memory = memory.Value()
		if t.MemoryQOS != nil {
			r.MemoryMin = memory.Value()
		}
	}
	if pids, ok := amounts[ResourcePID]; ok {
		r.PIDs = pids.Value()
	}
	if err := t.writer.set(n, r); err != nil {
		return fmt.Errorf("bound a reserved cgroup: %w", err)
	}
	return nil
}

// parseCgroup parses a configured cgroup: a path, or with systemd the name of a slice, from which
// the path follows.
func (t *Tree) parseCgroup(group string) cgroupName {
	if t.driver != Systemd {
		return parsePath(group)
	}
	var n cgroupName
	for part := range strings.SplitSeq(strings.TrimSuffix(path.Base(group), sliceSuffix), "-") {
		n = append(n, strings.ReplaceAll(part, "_", "-"))
	}
	return n
}

// limitedControllers are the controllers whose limits the kubelet sets.
var limitedControllers = []string{"cpu", "cpuset", "memory", "hugetlb", "pids"}

// missingControllers returns the controllers that the machine has and the cgroup does not.
func (t *Tree) missingControllers(n cgroupName) (missing []string) {
	for _, controller := range limitedControllers {
		has, err := t.hasController(controller, n)
		if err == nil && !has {
			missing = append(missing, controller)
		}
	}
	return missing
}

// hasController reports whether the cgroup has the controller. It returns errors.ErrUnsupported
// where the machine does not.
func (t *Tree) hasController(controller string, n cgroupName) (bool, error) {
	h := t.hierarchy
	if h.Version == 1 {
		mount := h.Mounts[controller]
		if mount == "" {
			return false, errors.ErrUnsupported
		}
		return exists(mount + n.path(t.driver)), nil
	}
	machine, err := availableControllers(h.Mounts[""])
	if err != nil || !slices.Contains(machine, controller) {
		return false, errors.ErrUnsupported
	}
	enabled, err := availableControllers(h.Mounts[""] + n.path(t.driver))
	return err == nil && slices.Contains(enabled, controller), nil
}
