package cpu

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/topology"
)

const resourceName = string(v1.ResourceCPU)

// hints returns the hints for a container: for its allocation, or else for its request.
func (r staticPolicy) hints(s State, p *v1.Pod, c *v1.Container) numa.Hints {
	n := r.requestedCPUs(p, c)
	if n == 0 {
		return nil
	}
	if current, ok := s.Containers[p.UID][c.Name]; ok {
		if current.Size() != n {
			return numa.Hints{resourceName: {}}
		}
		return numa.Hints{resourceName: r.nodeHints(current, cpuset.New(), n)}
	}
	reusable := r.reusable(s, p)
	return numa.Hints{resourceName: r.nodeHints(r.available(s, p).Difference(reusable), reusable, n)}
}

// podHints returns the hints for all containers of a pod: for their allocation, or else for their
// request.
func (r staticPolicy) podHints(s State, p *v1.Pod) numa.Hints {
	n := r.podRequestedCPUs(p)
	if n == 0 {
		return nil
	}
	if hasPodLevelResources(p) {
		if current, ok := s.Pods[p.UID]; ok {
			return numa.Hints{resourceName: r.nodeHints(current, cpuset.New(), current.Size())}
		}
		if r.checkSharedPool(p) != "" {
			return numa.Hints{resourceName: {}}
		}
		return numa.Hints{resourceName: r.nodeHints(r.available(s, p), cpuset.New(), n)}
	}
	current := cpuset.New()
	for c := range pod.Containers(p) {
		cpus, ok := s.Containers[p.UID][c.Name]
		if ok && cpus.Size() != r.requestedCPUs(p, c) {
			return numa.Hints{resourceName: {}}
		}
		current = current.Union(cpus)
	}
	if current.Size() == n {
		return numa.Hints{resourceName: r.nodeHints(current, cpuset.New(), n)}
	}
	return numa.Hints{resourceName: r.nodeHints(r.available(s, p).Difference(current), current, n)}
}

// nodeHints returns the sets of NUMA nodes that have n free or reusable CPUs and contain all the
// reusable ones. It prefers sets of the minimal size that could have n CPUs if all were free.
func (r staticPolicy) nodeHints(free, reusable cpuset.CPUSet, n int) []numa.Hint {
	total, left, must := map[int]int{}, map[int]int{}, numa.Nodes(0)
	all := numa.Nodes(0)
	for node, part := range r.machine.Parts(r.machine.All(), topology.ByNode) {
		total[node] = part.Size()
		all |= 1 << node
	}
	for node, part := range r.machine.Parts(free, topology.ByNode) {
		left[node] = part.Size()
	}
	for node, part := range r.machine.Parts(reusable, topology.ByNode) {
		left[node] += part.Size()
		must |= 1 << node
	}
	fewest := all.Count()
	hints := []numa.Hint{}
	all.Subsets(func(nodes numa.Nodes) {
		if sum(total, nodes) >= n {
			fewest = min(fewest, nodes.Count())
		}
		if must.SubsetOf(nodes) && sum(left, nodes) >= n {
			hints = append(hints, numa.Hint{Nodes: nodes})
		}
	})
	for i, h := range hints {
		hints[i].Preferred = h.Nodes.Count() == fewest || r.options.BySocket && r.onFewestSockets(h.Nodes, fewest)
	}
	return hints
}

func sum(by map[int]int, nodes numa.Nodes) (n int) {
	for _, node := range nodes.List() {
		n += by[node]
	}
	return n
}

// onFewestSockets reports whether the nodes are on no more sockets than that many nodes need.
func (r staticPolicy) onFewestSockets(nodes numa.Nodes, fewest int) bool {
	perSocket := r.machine.Count(topology.ByNode) / r.machine.Count(topology.BySocket)
	if perSocket == 0 {
		return false
	}
	sockets := len(r.machine.Parts(cpuset.New(r.cpusOfNodes(nodes)...), topology.BySocket))
	return sockets == (fewest+perSocket-1)/perSocket
}
