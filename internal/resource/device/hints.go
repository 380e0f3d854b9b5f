package device

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/resource/numa"
)

// Hints returns the sets of NUMA nodes that the container's devices could come from.
func (m *Manager) Hints(p *v1.Pod, c *v1.Container) numa.Hints {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := numa.Hints{}
	for resource, want := range m.requestsLocked(p, c) {
		key := allocationKey{p.UID, c.Name, resource}
		var allocatedIDs []string
		if g := m.allocations[key]; g != nil {
			allocatedIDs = g.ids()
		}
		s := m.candidatesLocked(p, key)
		free := slices.Concat(s.aligned, s.unaligned, s.indifferent)
		all[resource] = m.hintsLocked(resource, want, allocatedIDs, free, s.reusable)
	}
	return all
}

// PodHints returns the sets of NUMA nodes that the devices of all the pod's containers could come
// from.
func (m *Manager) PodHints(p *v1.Pod) numa.Hints {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := numa.Hints{}
	for name, amount := range resourcehelper.PodLimits(p, resourcehelper.PodResourcesOptions{ExcludeOverhead: true}) {
		resource, want := string(name), int(amount.Value())
		if want == 0 || !m.managesLocked(resource) {
			continue
		}
		var allocatedIDs []string
		for key, g := range m.allocations {
			if key.pod == p.UID && key.resource == resource {
				allocatedIDs = union(allocatedIDs, g.ids())
			}
		}
		s := m.candidatesLocked(p, allocationKey{pod: p.UID, resource: resource})
		free := slices.Concat(s.aligned, s.unaligned, s.indifferent)
		all[resource] = m.hintsLocked(resource, want, allocatedIDs, free, nil)
	}
	return all
}

// hintsLocked returns the sets of NUMA nodes that have enough devices: of the allocated ones if
// there are any, else of the free and reusable ones.
func (m *Manager) hintsLocked(resource string, want int, allocatedIDs, free, reusable []string) []numa.Hint {
	s := m.resources[resource]
	if s == nil || s.active() == nil { // no plugin, no topology
		return nil
	}
	nodesWithDevices := m.nodesOf(s)
	if nodesWithDevices == 0 { // the devices have no NUMA nodes
		return nil
	}
	switch {
	case len(allocatedIDs) > 0 && len(allocatedIDs) != want:
		return []numa.Hint{}
	case len(allocatedIDs) > 0:
		free, reusable = allocatedIDs, nil
	case len(union(free, reusable)) < want:
		return []numa.Hint{}
	}
	hints, all := []numa.Hint{}, slices.Collect(maps.Keys(s.devices))
	fewest := nodesWithDevices.Count()
	nodesWithDevices.Subsets(func(nodes numa.Nodes) {
		if m.countOn(s, nodes, all) >= want {
			fewest = min(fewest, nodes.Count())
		}
		reused := 0
		for _, id := range reusable {
			switch {
			case len(s.nodes(id)) == 0:
			case m.countOn(s, nodes, []string{id}) == 0:
				return
			default:
				reused++
			}
		}
		if reused+m.countOn(s, nodes, free) >= want {
			hints = append(hints, numa.Hint{Nodes: nodes})
		}
	})
	for i := range hints {
		hints[i].Preferred = hints[i].Nodes.Count() == fewest
	}
	return hints
}

// nodesOf returns the NUMA nodes of the resource's devices.
func (m *Manager) nodesOf(s *resourceState) numa.Nodes {
	var all numa.Nodes
	for id := range s.devices {
		for _, n := range s.nodes(id) {
			if k, err := numa.NewNodes(int(n)); err == nil {
				all |= k
			}
		}
	}
	return all & m.cfg.Nodes
}

// countOn counts the devices that belong to one of the nodes.
func (m *Manager) countOn(s *resourceState, nodes numa.Nodes, ids []string) int {
	n := 0
	for _, id := range ids {
		if slices.ContainsFunc(s.nodes(id), func(key int64) bool { return nodes.Has(int(key)) }) {
			n++
		}
	}
	return n
}
