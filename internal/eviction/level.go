package eviction

import (
	"swiftlet/internal/cgroup"
	"swiftlet/internal/stats"
)

// levelsOf puts what was measured under the names of signals.
func levelsOf(s stats.Signals) Levels {
	all := Levels{}
	set := func(signal Signal, r *stats.Room) {
		all[signal] = Level{Available: int64(r.Available), Capacity: int64(r.Capacity), At: r.At}
	}
	if s.Memory != nil {
		set(MemoryAvailable, &s.Memory.Room)
	}
	if s.PodMemory != nil {
		set(AllocatableMemoryAvailable, &s.PodMemory.Room)
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

// marks are where memory in use crosses a threshold. What is idle is in use for the kernel,
// and available for us.
func marks(thresholds []Threshold, s stats.Signals) []cgroup.Mark {
	var all []cgroup.Mark
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
			all = append(all, cgroup.Mark{Pods: pods, Bytes: memory.Capacity - floor + memory.Idle})
		}
	}
	return all
}
