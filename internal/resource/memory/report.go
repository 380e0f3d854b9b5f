package memory

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Memory returns the container's allocation for the PodResources API.
func (m *Memory) Memory(p *v1.Pod, c *v1.Container) []*resourcesv1.ContainerMemory {
	return containerMemory(m.snapshot().Containers[p.UID][c.Name])
}

// PodMemory returns the allocation of a pod with pod-level resources.
func (m *Memory) PodMemory(uid types.UID) []*resourcesv1.ContainerMemory {
	return containerMemory(m.snapshot().Pods[uid])
}

// AllocatableMemory returns the allocatable memory of each NUMA node, allocated or not.
func (m *Memory) AllocatableMemory() []*resourcesv1.ContainerMemory {
	var all []Block
	s := m.snapshot()
	for _, id := range slices.Sorted(maps.Keys(s.Nodes)) {
		tables := s.Nodes[id].MemoryMap
		for _, kind := range slices.Sorted(maps.Keys(tables)) {
			if size := tables[kind].Allocatable; size > 0 {
				all = append(all, Block{NUMAAffinity: []int{id}, Type: kind, Size: size})
			}
		}
	}
	return containerMemory(all)
}

func containerMemory(blocks []Block) []*resourcesv1.ContainerMemory {
	var all []*resourcesv1.ContainerMemory
	for _, b := range blocks {
		if b.Size == 0 {
			continue
		}
		one := &resourcesv1.ContainerMemory{MemoryType: string(b.Type), Size: b.Size, Topology: &resourcesv1.TopologyInfo{}}
		for _, id := range b.NUMAAffinity {
			one.Topology.Nodes = append(one.Topology.Nodes, &resourcesv1.NUMANode{ID: int64(id)})
		}
		all = append(all, one)
	}
	return all
}
