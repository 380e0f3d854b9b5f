package eviction

import (
	"math"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/stats"
)

// levelsFrom converts the measurements to levels by signal.
func levelsFrom(s stats.Signals) Levels {
	all := Levels{}
	set := func(signal Signal, r *stats.Level) {
		// A file system may report any number.
		all[signal] = Level{Available: int64(min(r.Available, math.MaxInt64)), Capacity: int64(min(r.Capacity, math.MaxInt64)), At: r.At}
	}
	if s.Memory != nil {
		set(MemoryAvailable, &s.Memory.Level)
	}
	if s.PodMemory != nil {
		set(AllocatableMemoryAvailable, &s.PodMemory.Level)
	}
	if s.PIDs != nil {
		set(PIDAvailable, s.PIDs)
	}
	for _, disk := range []struct {
		on            *stats.Disk
		space, inodes Signal
	}{
		{s.Node, NodeFsAvailable, NodeFsInodesFree},
		{s.Images, ImageFsAvailable, ImageFsInodesFree},
		{s.Containers, ContainerFsAvailable, ContainerFsInodesFree},
	} {
		if disk.on != nil {
			set(disk.space, &disk.on.Space)
			if disk.on.Inodes.Capacity > 0 { // some file systems do not count them
				set(disk.inodes, &disk.on.Inodes)
			}
		}
	}
	return all
}

// memoryThresholds returns the memory usage at which each threshold is crossed. The kernel counts
// idle file pages as used, the kubelet counts them as available.
func memoryThresholds(thresholds []Threshold, s stats.Signals) []cgroup.MemoryThreshold {
	var all []cgroup.MemoryThreshold
	for _, t := range thresholds {
		memory, pods := s.Memory, false
		switch t.Signal {
		case MemoryAvailable:
		case AllocatableMemoryAvailable:
			memory, pods = s.PodMemory, true
		default:
			continue
		}
		if memory == nil {
			continue
		}
		if floor := uint64(t.floor(int64(memory.Capacity), false)); floor < memory.Capacity {
			all = append(all, cgroup.MemoryThreshold{Pods: pods, Bytes: memory.Capacity - floor + memory.InactiveFile})
		}
	}
	return all
}
