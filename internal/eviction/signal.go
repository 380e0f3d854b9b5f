package eviction

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Signal names something that a node can run out of.
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

// Resources that only eviction speaks of.
const (
	resourceInodes v1.ResourceName = "inodes"
	resourcePIDs   v1.ResourceName = "pids"
)

// trait is what is known of a signal.
type trait struct {
	resource  v1.ResourceName
	condition v1.NodeConditionType
	// fastest is how much of it pods can use up in a second at most. Nobody looks sooner
	// than that could bring the level down to a threshold.
	fastest int64
	// often is the shortest time between two looks.
	often time.Duration
}

const (
	soon = 100 * time.Millisecond // memory: what is short of it dies
	late = 500 * time.Millisecond
)

var traits = map[Signal]trait{
	MemoryAvailable:            {v1.ResourceMemory, v1.NodeMemoryPressure, 1 << 30, soon},
	AllocatableMemoryAvailable: {v1.ResourceMemory, v1.NodeMemoryPressure, 1 << 30, soon},
	NodeFsAvailable:            {v1.ResourceEphemeralStorage, v1.NodeDiskPressure, 1 << 30, late},
	NodeFsInodesFree:           {resourceInodes, v1.NodeDiskPressure, 100_000, late},
	ImageFsAvailable:           {v1.ResourceEphemeralStorage, v1.NodeDiskPressure, 1 << 30, late},
	ImageFsInodesFree:          {resourceInodes, v1.NodeDiskPressure, 100_000, late},
	ContainerFsAvailable:       {v1.ResourceEphemeralStorage, v1.NodeDiskPressure, 1 << 30, late},
	ContainerFsInodesFree:      {resourceInodes, v1.NodeDiskPressure, 100_000, late},
	PIDAvailable:               {resourcePIDs, v1.NodePIDPressure, 10_000, late},
}

// order is how urgent signals are. Memory comes before all else, for what is short of it is
// killed by the kernel.
var order = []Signal{
	MemoryAvailable, AllocatableMemoryAvailable,
	NodeFsAvailable, NodeFsInodesFree, ImageFsAvailable, ImageFsInodesFree, ContainerFsAvailable, ContainerFsInodesFree,
	PIDAvailable,
}
