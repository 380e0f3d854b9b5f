package cpu

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/topology"
)

const resourceName = string(v1.ResourceCPU)

// hints says where the container's CPUs could come from, or do.
func (r rules) hints(s State, p *v1.Pod, c *v1.Container) numa.Hints {
	n := r.wants(p, c)
	if n == 0 {
		return nil
	}
	if has, ok := s.Given[p.UID][c.Name]; ok {
		if has.Size() != n {
			return numa.Hints{resourceName: {}}
		}
		return numa.Hints{resourceName: r.places(has, cpuset.New(), n)}
	}
	again := r.reusable(s, p)
	return numa.Hints{resourceName: r.places(r.available(s, p).Difference(again), again, n)}
}

// podHints says where the CPUs of all the pod's containers could come from, or do.
func (r rules) podHints(s State, p *v1.Pod) numa.Hints {
	n := r.podWants(p)
	if n == 0 {
		return nil
	}
	if asWhole(p) {
		if has, ok := s.Pods[p.UID]; ok {
			return numa.Hints{resourceName: r.places(has, cpuset.New(), has.Size())}
		}
		if r.leavesNone(p) != "" {
			return numa.Hints{resourceName: {}}
		}
		return numa.Hints{resourceName: r.places(r.available(s, p), cpuset.New(), n)}
	}
	has := cpuset.New()
	for c := range pod.Containers(p) {
		given, ok := s.Given[p.UID][c.Name]
		if ok && given.Size() != r.wants(p, c) {
			return numa.Hints{resourceName: {}}
		}
		has = has.Union(given)
	}
	if has.Size() == n {
		return numa.Hints{resourceName: r.places(has, cpuset.New(), n)}
	}
	return numa.Hints{resourceName: r.places(r.available(s, p).Difference(has), has, n)}
}

// places are the sets of NUMA nodes that have n CPUs, counting those that the pod must use
// again, which the nodes must all have. Sets as small as any that could have so many, were
// the whole machine free, are preferred.
func (r rules) places(free, again cpuset.CPUSet, n int) []numa.Hint {
	total, left, must := map[int]int{}, map[int]int{}, numa.Nodes(0)
	all := numa.Nodes(0)
	for node, part := range r.machine.Parts(r.machine.All(), topology.ByNode) {
		total[node] = part.Size()
		all |= 1 << node
	}
	for node, part := range r.machine.Parts(free, topology.ByNode) {
		left[node] = part.Size()
	}
	for node, part := range r.machine.Parts(again, topology.ByNode) {
		left[node] += part.Size()
		must |= 1 << node
	}
	fewest := all.Count()
	hints := []numa.Hint{}
	all.Subsets(func(nodes numa.Nodes) {
		if sum(total, nodes) >= n {
			fewest = min(fewest, nodes.Count())
		}
		if must.Within(nodes) && sum(left, nodes) >= n {
			hints = append(hints, numa.Hint{Nodes: nodes})
		}
	})
	for i, h := range hints {
		hints[i].Preferred = h.Nodes.Count() == fewest || r.options.BySocket && r.fewSockets(h.Nodes, fewest)
	}
	return hints
}

func sum(by map[int]int, nodes numa.Nodes) (n int) {
	for _, node := range nodes.List() {
		n += by[node]
	}
	return n
}

// fewSockets: the nodes are in no more sockets than so many nodes must be.
func (r rules) fewSockets(nodes numa.Nodes, fewest int) bool {
	perSocket := r.machine.Count(topology.ByNode) / r.machine.Count(topology.BySocket)
	if perSocket == 0 {
		return false
	}
	sockets := len(r.machine.Parts(cpuset.New(r.inNodes(nodes)...), topology.BySocket))
	return sockets == (fewest+perSocket-1)/perSocket
}
