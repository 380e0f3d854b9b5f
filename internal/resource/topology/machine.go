// Package topology reads the machine's CPU and NUMA topology from /sys.
package topology

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/cpuset"
)

// CPU is an online logical CPU.
type CPU struct {
	ID int
	// Core and Cache are the lowest CPU that shares the core or the last-level cache. Unlike
	// the kernel's ids, these are unique in the machine.
	Core, Cache int
	// Socket and Node are the kernel's ids.
	Socket, Node int
}

// Node is one NUMA node. It may be without CPUs, or without memory.
type Node struct {
	ID int
	// Distances are the distances to the memory of node 0, 1, ...; nil if unknown.
	Distances []uint64
	// Memory is all of its memory in bytes, HugePages included.
	Memory uint64
	// HugePages is the number of allocated huge pages by size in bytes.
	HugePages map[uint64]uint64
}

// Machine is an immutable topology.
type Machine struct {
	CPUs  map[int]CPU
	Nodes []Node // in ascending order

	all   cpuset.CPUSet
	parts [levels]map[int]cpuset.CPUSet
}

// Level is a level of the topology, which divides CPUs into parts.
type Level int

// Topology levels.
const (
	BySocket Level = iota
	ByNode
	ByCache
	ByCore
	levels
)

// Part returns the id of the part that contains the CPU.
func (l Level) Part(c CPU) int {
	return [levels]int{c.Socket, c.Node, c.Cache, c.Core}[l]
}

// index precomputes the set of all CPUs and the parts of each level.
func (m *Machine) index() *Machine {
	m.all = cpuset.New(slices.Collect(maps.Keys(m.CPUs))...)
	for l := range levels {
		m.parts[l] = m.Parts(m.all, l)
	}
	return m
}

// All returns the set of all CPUs.
func (m *Machine) All() cpuset.CPUSet { return m.all }

// Part returns all CPUs of the part that contains the CPU.
func (m *Machine) Part(cpu int, level Level) cpuset.CPUSet {
	return m.parts[level][level.Part(m.CPUs[cpu])]
}

// Parts divides CPUs by level. It ignores CPUs that are not online.
func (m *Machine) Parts(cpus cpuset.CPUSet, level Level) map[int]cpuset.CPUSet {
	members := map[int][]int{}
	for _, id := range cpus.UnsortedList() {
		if c, ok := m.CPUs[id]; ok {
			part := level.Part(c)
			members[part] = append(members[part], id)
		}
	}
	parts := make(map[int]cpuset.CPUSet, len(members))
	for part, ids := range members {
		parts[part] = cpuset.New(ids...)
	}
	return parts
}

// Count returns the number of parts of the level that have CPUs.
func (m *Machine) Count(level Level) int { return len(m.parts[level]) }

// ThreadsPerCore returns the number of CPUs per core; if cores differ, the average rounded down.
func (m *Machine) ThreadsPerCore() int {
	if cores := m.Count(ByCore); cores > 0 {
		return len(m.CPUs) / cores
	}
	return 0
}

// Expand returns all CPUs of the parts that contain any of the CPUs.
func (m *Machine) Expand(cpus cpuset.CPUSet, level Level) cpuset.CPUSet {
	whole := cpuset.New()
	for part := range m.Parts(cpus, level) {
		whole = whole.Union(m.parts[level][part])
	}
	return whole
}

// CheckOnline returns an error if one of the CPUs does not exist or is offline.
func (m *Machine) CheckOnline(cpus cpuset.CPUSet) error {
	if missing := cpus.Difference(m.All()); !missing.IsEmpty() {
		return fmt.Errorf("no CPU %s online; online are %s", missing, m.All())
	}
	return nil
}
