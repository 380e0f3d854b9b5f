package device

import (
	"context"
	"iter"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// requestsLocked yields the number of devices that a container requests, by resource in order of
// name. Devices are not overcommitted, so requests equal limits.
func (m *Manager) requestsLocked(p *v1.Pod, c *v1.Container) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, name := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
			amount := c.Resources.Limits[name]
			if n := int(amount.Value()); n > 0 && m.managesLocked(string(name)) && !pod.FromResourceClaim(p, c.Name, name) && !yield(string(name), n) {
				return
			}
		}
	}
}

// containersInOrder yields all but ephemeral containers in the order in which they run.
func containersInOrder(p *v1.Pod) iter.Seq[*v1.Container] {
	return func(yield func(*v1.Container) bool) {
		for c, kind := range pod.Containers(p) {
			if kind != pod.Ephemeral && !yield(c) {
				return
			}
		}
	}
}

// reusableLocked returns the devices of init containers that end before the container starts,
// without those that a later container has taken over.
func (m *Manager) reusableLocked(p *v1.Pod, container, resource string) []string {
	var free []string
	for c, kind := range pod.Containers(p) {
		if c.Name == container {
			break
		}
		g := m.allocations[allocationKey{p.UID, c.Name, resource}]
		if g == nil {
			continue
		}
		isAllocated := func(id string) bool { _, isAllocated := g.nodes[id]; return isAllocated }
		free = slices.DeleteFunc(free, isAllocated)
		if kind == pod.Init && !pod.IsSidecar(c) {
			free = append(free, g.ids()...)
		}
	}
	slices.Sort(free)
	return free
}

// pendingLocked returns the allocations that depend on that of key, including its own: those of
// this and the later containers of the pod that no plugin has confirmed yet.
func (m *Manager) pendingLocked(p *v1.Pod, key allocationKey) []allocationKey {
	var all []allocationKey
	from := key.container == ""
	for c := range containersInOrder(p) {
		from = from || c.Name == key.container
		k := allocationKey{p.UID, c.Name, key.resource}
		if g := m.allocations[k]; from && g != nil && g.response == nil {
			all = append(all, k)
		}
	}
	return all
}

// candidatesLocked returns the devices that the container may get.
func (m *Manager) candidatesLocked(p *v1.Pod, key allocationKey) candidates {
	s, pending := m.resources[key.resource], m.pendingLocked(p, key)
	healthy := s.healthy()
	taken := m.allocations.taken(key.resource, func(k allocationKey) bool { return slices.Contains(pending, k) })
	all := candidates{}
	for _, id := range m.reusableLocked(p, key.container, key.resource) {
		if healthy[id] {
			all.reusable = append(all.reusable, id)
		}
	}
	affinity := m.affinity[key]
	for _, id := range slices.Sorted(maps.Keys(healthy)) {
		if taken[id] {
			continue
		}
		nodes := s.nodes(id)
		switch {
		case affinity == 0 || len(nodes) == 0:
			all.indifferent = append(all.indifferent, id)
		case slices.ContainsFunc(nodes, func(n int64) bool { return affinity.Has(int(n)) }):
			all.aligned = append(all.aligned, id)
		default:
			all.unaligned = append(all.unaligned, id)
		}
	}
	return all
}

// assignLocked assigns the devices to the container, and chooses again for the pod's later
// containers, whose reusable devices may have changed. Their devices suffice, because no other
// pod was assigned any.
func (m *Manager) assignLocked(p *v1.Pod, key allocationKey, ids []string) (*allocation, error) {
	if g := m.allocations[key]; g != nil && slices.Equal(g.ids(), slices.Sorted(slices.Values(ids))) {
		return g, nil
	}
	counts := map[allocationKey]int{}
	pending := m.pendingLocked(p, key)
	for _, k := range pending {
		counts[k] = len(m.allocations[k].nodes)
		delete(m.allocations, k)
	}
	g := m.setAllocationLocked(key, ids)
	for _, k := range pending {
		if k == key {
			continue
		}
		ids, err := m.candidatesLocked(p, k).choose(k.resource, counts[k], nil)
		if err != nil {
			return nil, err
		}
		m.setAllocationLocked(k, ids)
	}
	return g, nil
}

// setAllocationLocked stores the allocation.
func (m *Manager) setAllocationLocked(key allocationKey, ids []string) *allocation {
	g := &allocation{nodes: map[string][]int64{}}
	for _, id := range ids {
		g.nodes[id] = m.resources[key.resource].nodes(id)
	}
	m.allocations[key] = g
	return g
}

// Release frees the pod's devices, if it has any.
func (m *Manager) Release(uid types.UID) {
	m.releaseAll(func(k types.UID) bool { return k == uid })
}

// Retain frees the devices of pods that are not known. Call it when every pod source is ready.
func (m *Manager) Retain(known func(types.UID) bool) {
	m.releaseAll(func(uid types.UID) bool { return !known(uid) })
}

func (m *Manager) releaseAll(match func(types.UID) bool) {
	m.mu.Lock()
	saved := m.allocations.remove(match)
	maps.DeleteFunc(m.waiting, func(uid types.UID, _ string) bool { return match(uid) })
	for key := range m.affinity {
		if match(key.pod) {
			delete(m.affinity, key)
		}
	}
	m.mu.Unlock()
	if saved {
		m.released.Changed()
	}
}

// Written returns when the checkpoint has all releases so far. If the agent ends before, the next one frees the
// devices in Retain.
func (m *Manager) Written(ctx context.Context) error { return m.released.Written(ctx) }
