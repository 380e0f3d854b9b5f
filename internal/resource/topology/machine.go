// Package topology knows how a machine's CPUs and memory lie together, as the kernel shows
// it below /sys.
package topology

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/cpuset"
)

// CPU is one logical CPU that is online.
type CPU struct {
	ID int
	// Core and Cache are the lowest CPU that shares the core, and the last-level cache:
	// unique in the machine, as the kernel's own numbers are not.
	Core, Cache int
	// Socket and Node are the kernel's numbers.
	Socket, Node int
}

// Node is one NUMA node. It may be without CPUs, or without memory.
type Node struct {
	ID int
	// Distances are how far the memory of node 0, 1, ... is; nil where the kernel does not say.
	Distances []uint64
	// Memory is all of its memory in bytes, HugePages included.
	Memory uint64
	// HugePages is how many pages of each size, in bytes, are set aside.
	HugePages map[uint64]uint64
}

// Machine is what was found. It does not change.
type Machine struct {
	CPUs  map[int]CPU
	Nodes []Node // in ascending order

	all   cpuset.CPUSet
	whole [levels]map[int]cpuset.CPUSet
}

// Level is a kind of part that a machine's CPUs can be divided into.
type Level int

// The levels.
const (
	BySocket Level = iota
	ByNode
	ByCache
	ByCore
	levels
)

// Of is the part that the CPU is in.
func (l Level) Of(c CPU) int {
	return [levels]int{c.Socket, c.Node, c.Cache, c.Core}[l]
}

// finish computes what is asked for all the time.
func (m *Machine) finish() *Machine {
	m.all = cpuset.New(slices.Collect(maps.Keys(m.CPUs))...)
	for l := range levels {
		m.whole[l] = m.Parts(m.all, l)
	}
	return m
}

// All is the set of all CPUs.
func (m *Machine) All() cpuset.CPUSet { return m.all }

// Part is all CPUs of the part that the CPU is in.
func (m *Machine) Part(cpu int, level Level) cpuset.CPUSet {
	return m.whole[level][level.Of(m.CPUs[cpu])]
}

// Parts divides CPUs by what they belong to. CPUs that the machine does not have are left out.
func (m *Machine) Parts(cpus cpuset.CPUSet, level Level) map[int]cpuset.CPUSet {
	members := map[int][]int{}
	for _, id := range cpus.UnsortedList() {
		if c, ok := m.CPUs[id]; ok {
			part := level.Of(c)
			members[part] = append(members[part], id)
		}
	}
	parts := make(map[int]cpuset.CPUSet, len(members))
	for part, ids := range members {
		parts[part] = cpuset.New(ids...)
	}
	return parts
}

// Count is how many parts of the level have CPUs.
func (m *Machine) Count(level Level) int { return len(m.whole[level]) }

// ThreadsPerCore is how many CPUs a core has; where cores differ, the average rounded down.
func (m *Machine) ThreadsPerCore() int {
	if cores := m.Count(ByCore); cores > 0 {
		return len(m.CPUs) / cores
	}
	return 0
}

// Whole widens a set to all CPUs of the parts that it touches.
func (m *Machine) Whole(cpus cpuset.CPUSet, level Level) cpuset.CPUSet {
	whole := cpuset.New()
	for part := range m.Parts(cpus, level) {
		whole = whole.Union(m.whole[level][part])
	}
	return whole
}

// Lacks names CPUs that the machine does not have, or that are offline.
func (m *Machine) Lacks(cpus cpuset.CPUSet) error {
	if missing := cpus.Difference(m.All()); !missing.IsEmpty() {
		return fmt.Errorf("the machine has no CPU %s; it has %s", missing, m.All())
	}
	return nil
}
