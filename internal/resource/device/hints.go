package device

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/resource/numa"
)

// Hints says from which NUMA nodes the container could have its devices.
func (m *Manager) Hints(p *v1.Pod, c *v1.Container) numa.Hints {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := numa.Hints{}
	for resource, want := range m.asks(p, c) {
		at := place{p.UID, c.Name, resource}
		var has []string
		if g := m.grants[at]; g != nil {
			has = g.ids()
		}
		s := m.supply(p, at)
		free := slices.Concat(s.aligned, s.unaligned, s.indifferent)
		all[resource] = m.hint(resource, want, has, free, s.reusable)
	}
	return all
}

// PodHints says from which NUMA nodes the pod's containers could all have their devices.
func (m *Manager) PodHints(p *v1.Pod) numa.Hints {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := numa.Hints{}
	for name, amount := range resourcehelper.PodLimits(p, resourcehelper.PodResourcesOptions{ExcludeOverhead: true}) {
		resource, want := string(name), int(amount.Value())
		if want == 0 || !m.gives(resource) {
			continue
		}
		var has []string
		for at, g := range m.grants {
			if at.pod == p.UID && at.resource == resource {
				has = union(has, g.ids())
			}
		}
		s := m.supply(p, place{pod: p.UID, resource: resource})
		free := slices.Concat(s.aligned, s.unaligned, s.indifferent)
		all[resource] = m.hint(resource, want, has, free, nil)
	}
	return all
}

// hint lists where as many devices as wanted lie: of those that one has already, else of
// the free and the reusable ones. Called under the lock.
func (m *Manager) hint(resource string, want int, has, free, reusable []string) []numa.Hint {
	s := m.resources[resource]
	if s == nil || s.inUse() == nil { // its plugin is not there to say
		return nil
	}
	machine := m.nodesOf(s)
	if machine == 0 { // it does not care
		return nil
	}
	switch {
	case len(has) > 0 && len(has) != want:
		return []numa.Hint{}
	case len(has) > 0:
		free, reusable = has, nil
	case len(union(free, reusable)) < want:
		return []numa.Hint{}
	}
	hints, all := []numa.Hint{}, slices.Collect(maps.Keys(s.devices))
	fewest := machine.Count()
	machine.Subsets(func(nodes numa.Nodes) {
		if m.within(s, nodes, all) >= want {
			fewest = min(fewest, nodes.Count())
		}
		reused := 0
		for _, id := range reusable {
			switch {
			case len(s.nodes(id)) == 0:
			case m.within(s, nodes, []string{id}) == 0:
				return
			default:
				reused++
			}
		}
		if reused+m.within(s, nodes, free) >= want {
			hints = append(hints, numa.Hint{Nodes: nodes})
		}
	})
	for i := range hints {
		hints[i].Preferred = hints[i].Nodes.Count() == fewest
	}
	return hints
}

// nodesOf are the machine's nodes that devices of the resource belong to.
func (m *Manager) nodesOf(s *stock) numa.Nodes {
	var all numa.Nodes
	for id := range s.devices {
		for _, n := range s.nodes(id) {
			if one, err := numa.Of(int(n)); err == nil {
				all |= one
			}
		}
	}
	return all & m.cfg.Nodes
}

// within counts the devices that belong to one of the nodes.
func (m *Manager) within(s *stock, nodes numa.Nodes, ids []string) int {
	n := 0
	for _, id := range ids {
		if slices.ContainsFunc(s.nodes(id), func(at int64) bool { return nodes.Has(int(at)) }) {
			n++
		}
	}
	return n
}
