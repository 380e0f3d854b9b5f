package cpu

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/resource/topology"
)

// CPUSet returns the CPUs that the container may run on; empty if it is not restricted.
func (c *CPUs) CPUSet(uid types.UID, container string) cpuset.CPUSet {
	if c.resetAffinity {
		return c.cfg.Machine.All()
	}
	if !c.Static() {
		return cpuset.New()
	}
	s := c.snapshot()
	if cpus, ok := s.Containers[uid][container]; ok {
		return cpus
	}
	return s.Shared
}

// Pods returns the pods that have exclusive CPUs.
func (c *CPUs) Pods() []types.UID {
	s := c.snapshot()
	all := maps.Clone(s.Pods)
	if all == nil {
		all = map[types.UID]cpuset.CPUSet{}
	}
	for uid := range s.Containers {
		all[uid] = cpuset.New()
	}
	return slices.Sorted(maps.Keys(all))
}

// CPUs returns the CPUs that are allocated to the container, or shared within its pod.
func (c *CPUs) CPUs(p *v1.Pod, container *v1.Container) []int64 {
	return ids(c.snapshot().Containers[p.UID][container.Name])
}

// PodCPUs returns the CPUs that are allocated to a pod with pod-level resources.
func (c *CPUs) PodCPUs(uid types.UID) []int64 { return ids(c.snapshot().Pods[uid]) }

// AllocatableCPUs returns the CPUs that can be allocated exclusively, allocated or not.
func (c *CPUs) AllocatableCPUs() []int64 {
	if !c.Static() {
		return nil
	}
	return ids(c.cfg.Machine.All().Difference(c.policy.reserved))
}

// Usage counts allocated and free CPUs.
type Usage struct {
	// Exclusive is the number of allocated CPUs, Free the number of allocatable ones that are
	// not.
	Exclusive, Free int
	// ByNode is the number of allocated CPUs of each NUMA node.
	ByNode map[int]int
}

// Usage returns the current counts.
func (c *CPUs) Usage() Usage {
	s := c.snapshot()
	taken := s.allocated()
	t := Usage{Exclusive: taken.Size(), Free: s.Shared.Difference(c.policy.reserved).Size(), ByNode: map[int]int{}}
	for node, part := range c.cfg.Machine.Parts(taken, topology.ByNode) {
		t.ByNode[node] = part.Size()
	}
	return t
}

func ids(cpus cpuset.CPUSet) []int64 {
	var all []int64
	for _, id := range cpus.List() {
		all = append(all, int64(id))
	}
	return all
}
