package eviction

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Signal names a resource that a node can run out of.
type Signal string

const (
	MemoryAvailable            Signal = "memory.available"
	AllocatableMemoryAvailable Signal = "allocatableMemory.available"
	NodeFsAvailable            Signal = "nodefs.available"
	NodeFsInodesFree           Signal = "nodefs.inodesFree"
	ImageFsAvailable           Signal = "imagefs.available"
	ImageFsInodesFree          Signal = "imagefs.inodesFree"
	ContainerFsAvailable       Signal = "containerfs.available"
	ContainerFsInodesFree      Signal = "containerfs.inodesFree"
	PIDAvailable               Signal = "pid.available"
)

// Resources that exist only in eviction.
const (
	resourceInodes v1.ResourceName = "inodes"
	resourcePIDs   v1.ResourceName = "pids"
)

// signalInfo is what the Evictor knows about a signal.
type signalInfo struct {
	resource  v1.ResourceName
	condition v1.NodeConditionType
	// maxRate is how much of the resource pods can use up in a second at most. It sets the
	// time of the next check.
	maxRate int64
	// minInterval is the shortest time between two checks.
	minInterval time.Duration
}

const (
	memoryInterval = 100 * time.Millisecond // short, before the OOM killer acts
	otherInterval  = 500 * time.Millisecond
)

var signalInfos = map[Signal]signalInfo{
	MemoryAvailable:            {v1.ResourceMemory, v1.NodeMemoryPressure, 1 << 30, memoryInterval},
	AllocatableMemoryAvailable: {v1.ResourceMemory, v1.NodeMemoryPressure, 1 << 30, memoryInterval},
	NodeFsAvailable:            {v1.ResourceEphemeralStorage, v1.NodeDiskPressure, 1 << 30, otherInterval},
	NodeFsInodesFree:           {resourceInodes, v1.NodeDiskPressure, 100_000, otherInterval},
	ImageFsAvailable:           {v1.ResourceEphemeralStorage, v1.NodeDiskPressure, 1 << 30, otherInterval},
	ImageFsInodesFree:          {resourceInodes, v1.NodeDiskPressure, 100_000, otherInterval},
	ContainerFsAvailable:       {v1.ResourceEphemeralStorage, v1.NodeDiskPressure, 1 << 30, otherInterval},
	ContainerFsInodesFree:      {resourceInodes, v1.NodeDiskPressure, 100_000, otherInterval},
	PIDAvailable:               {resourcePIDs, v1.NodePIDPressure, 10_000, otherInterval},
}

// urgency orders the signals. Memory comes first, because the OOM killer kills what is short
// of it.
var urgency = []Signal{
	MemoryAvailable, AllocatableMemoryAvailable,
	NodeFsAvailable, NodeFsInodesFree, ImageFsAvailable, ImageFsInodesFree, ContainerFsAvailable, ContainerFsInodesFree,
	PIDAvailable,
}
