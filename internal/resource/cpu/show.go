package cpu

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/resource/topology"
)

// Of are the CPUs that the container is to run on; empty if that is not bounded.
func (c *CPUs) Of(uid types.UID, container string) cpuset.CPUSet {
	if c.loose {
		return c.cfg.Machine.All()
	}
	if !c.Static() {
		return cpuset.New()
	}
	s := c.now()
	if cpus, ok := s.Given[uid][container]; ok {
		return cpus
	}
	return s.Shared
}

// Pods are those that have CPUs of their own.
func (c *CPUs) Pods() []types.UID {
	s := c.now()
	all := maps.Clone(s.Pods)
	if all == nil {
		all = map[types.UID]cpuset.CPUSet{}
	}
	for uid := range s.Given {
		all[uid] = cpuset.New()
	}
	return slices.Sorted(maps.Keys(all))
}

// CPUs are those that the container alone runs on, or with others of its pod.
func (c *CPUs) CPUs(p *v1.Pod, container *v1.Container) []int64 {
	return numbers(c.now().Given[p.UID][container.Name])
}

// PodCPUs are those that were given to the pod as a whole.
func (c *CPUs) PodCPUs(uid types.UID) []int64 { return numbers(c.now().Pods[uid]) }

// AllocatableCPUs are those that containers can be given, given or not.
func (c *CPUs) AllocatableCPUs() []int64 {
	if !c.Static() {
		return nil
	}
	return numbers(c.cfg.Machine.All().Difference(c.rules.reserved))
}

// Tally is what is given and left.
type Tally struct {
	// Exclusive is how many are given, Free how many could still be.
	Exclusive, Free int
	// ByNode is how many are given of each NUMA node.
	ByNode map[int]int
}

// Tally counts.
func (c *CPUs) Tally() Tally {
	s := c.now()
	taken := s.taken()
	t := Tally{Exclusive: taken.Size(), Free: s.Shared.Difference(c.rules.reserved).Size(), ByNode: map[int]int{}}
	for node, part := range c.cfg.Machine.Parts(taken, topology.ByNode) {
		t.ByNode[node] = part.Size()
	}
	return t
}

func numbers(cpus cpuset.CPUSet) []int64 {
	var all []int64
	for _, id := range cpus.List() {
		all = append(all, int64(id))
	}
	return all
}
