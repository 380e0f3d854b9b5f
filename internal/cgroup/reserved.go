package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// BoundReserved bounds a group of the system to what is kept for it of cpu, memory and
// ResourcePID. The group is its owner's to make: that it is missing is an error.
func (t *Tree) BoundReserved(group string, amounts v1.ResourceList) error {
	n := t.parse(group)
	if missing := t.missing(n); len(missing) > 0 {
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

// parse reads a group that the configuration names: a path, or a slice of systemd, which
// says in its name where it is.
func (t *Tree) parse(group string) name {
	if t.driver != Systemd {
		return parseRoot(group)
	}
	var n name
	for part := range strings.SplitSeq(strings.TrimSuffix(path.Base(group), slice), "-") {
		n = append(n, strings.ReplaceAll(part, "_", "-"))
	}
	return n
}

// used are the controllers whose bounds we set.
var used = []string{"cpu", "cpuset", "memory", "hugetlb", "pids"}

// missing are those of the machine's controllers that the group cannot be bounded by.
func (t *Tree) missing(n name) (lacking []string) {
	for _, controller := range used {
		there, err := t.controlled(controller, n)
		if err == nil && !there {
			lacking = append(lacking, controller)
		}
	}
	return lacking
}

// controlled reports whether the group has the controller; errors.ErrUnsupported says that
// the machine has not.
func (t *Tree) controlled(controller string, n name) (bool, error) {
	h := t.hierarchy
	if h.Version == 1 {
		mount := h.Mounts[controller]
		if mount == "" {
			return false, errors.ErrUnsupported
		}
		return exists(mount + n.path(t.driver)), nil
	}
	onMachine, err := controllers(h.Mounts[""])
	if err != nil || !slices.Contains(onMachine, controller) {
		return false, errors.ErrUnsupported
	}
	inGroup, err := controllers(h.Mounts[""] + n.path(t.driver))
	return err == nil && slices.Contains(inGroup, controller), nil
}

// Enter makes a group of the system and moves processes into it. It goes on with the others
// where one cannot be moved.
func (t *Tree) Enter(group string, pids ...int) error {
	n := parseRoot(group) // a plain directory whatever the driver: the group is not of pods
	if err := (directories{t.hierarchy}).create(n, Resources{Hugepages: t.unbounded()}); err != nil {
		return fmt.Errorf("enter a cgroup: %w", err)
	}
	var errs []error
	for _, dir := range t.hierarchy.present(n.path(Cgroupfs)) {
		for _, pid := range pids {
			if err := os.WriteFile(path.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0); err != nil {
				errs = append(errs, fmt.Errorf("move process %d to cgroup %s: %w", pid, group, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Stray are the processes that are in no group below the root: not the kernel's own, nor
// the first.
func (t *Tree) Stray() ([]int, error) {
	text, err := os.ReadFile(t.hierarchy.witness("/cgroup.procs"))
	if err != nil {
		return nil, fmt.Errorf("list processes outside of cgroups: %w", err)
	}
	var stray []int
	for field := range strings.FieldsSeq(string(text)) {
		var pid int
		if _, err := fmt.Sscan(field, &pid); err != nil || pid <= 1 {
			continue
		}
		if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil { // a kernel thread has none
			stray = append(stray, pid)
		}
	}
	return stray, nil
}
