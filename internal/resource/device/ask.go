package device

import (
	"iter"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// asks are the devices that a container asks for, by resource in order of name. Devices are
// not overcommitted, so limits say it all. Called under the lock.
func (m *Manager) asks(p *v1.Pod, c *v1.Container) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, name := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
			amount := c.Resources.Limits[name]
			if n := int(amount.Value()); n > 0 && m.gives(string(name)) && !pod.Claimed(p, c.Name, name) && !yield(string(name), n) {
				return
			}
		}
	}
}

// inOrder yields the containers that may have devices, as they run.
func inOrder(p *v1.Pod) iter.Seq[*v1.Container] {
	return func(yield func(*v1.Container) bool) {
		for c, kind := range pod.Containers(p) {
			if kind != pod.Ephemeral && !yield(c) {
				return
			}
		}
	}
}

// reusable are the devices of init containers that end before the container begins, without
// those that another one has taken over since. Called under the lock.
func (m *Manager) reusable(p *v1.Pod, container, resource string) []string {
	var free []string
	for c, kind := range pod.Containers(p) {
		if c.Name == container {
			break
		}
		g := m.grants[place{p.UID, c.Name, resource}]
		if g == nil {
			continue
		}
		has := func(id string) bool { _, has := g.nodes[id]; return has }
		free = slices.DeleteFunc(free, has)
		if kind == pod.Init && !pod.IsSidecar(c) {
			free = append(free, g.ids()...)
		}
	}
	slices.Sort(free)
	return free
}

// open are the places whose choice depends on what is chosen for at, itself among them: of
// the containers of its pod from its own on, those of which the plugin does not know yet.
// Called under the lock.
func (m *Manager) open(p *v1.Pod, at place) []place {
	var all []place
	from := at.container == ""
	for c := range inOrder(p) {
		from = from || c.Name == at.container
		one := place{p.UID, c.Name, at.resource}
		if g := m.grants[one]; from && g != nil && g.answer == nil {
			all = append(all, one)
		}
	}
	return all
}

// supply sorts the devices that the place may have. Called under the lock.
func (m *Manager) supply(p *v1.Pod, at place) supply {
	s, open := m.resources[at.resource], m.open(p, at)
	healthy := s.healthy()
	taken := m.grants.taken(at.resource, func(one place) bool { return slices.Contains(open, one) })
	all := supply{}
	for _, id := range m.reusable(p, at.container, at.resource) {
		if healthy[id] {
			all.reusable = append(all.reusable, id)
		}
	}
	where := m.where[at]
	for _, id := range slices.Sorted(maps.Keys(healthy)) {
		if taken[id] {
			continue
		}
		nodes := s.nodes(id)
		switch {
		case where == 0 || len(nodes) == 0:
			all.indifferent = append(all.indifferent, id)
		case slices.ContainsFunc(nodes, func(n int64) bool { return where.Has(int(n)) }):
			all.aligned = append(all.aligned, id)
		default:
			all.unaligned = append(all.unaligned, id)
		}
	}
	return all
}

// settle gives the devices to the place, and has the containers after it choose again: what
// they can take over may have changed. There is enough for them, as nobody else was given
// anything. Called under the lock.
func (m *Manager) settle(p *v1.Pod, at place, ids []string) (*grant, error) {
	if g := m.grants[at]; g != nil && slices.Equal(g.ids(), slices.Sorted(slices.Values(ids))) {
		return g, nil
	}
	wants := map[place]int{}
	open := m.open(p, at)
	for _, one := range open {
		wants[one] = len(m.grants[one].nodes)
		delete(m.grants, one)
	}
	g := m.hold(at, ids)
	for _, one := range open {
		if one == at {
			continue
		}
		ids, err := m.supply(p, one).choose(one.resource, wants[one], nil)
		if err != nil {
			return nil, err
		}
		m.hold(one, ids)
	}
	return g, nil
}

// hold gives the devices to the place. Called under the lock.
func (m *Manager) hold(at place, ids []string) *grant {
	g := &grant{nodes: map[string][]int64{}}
	for _, id := range ids {
		g.nodes[id] = m.resources[at.resource].nodes(id)
	}
	m.grants[at] = g
	return g
}

// Release takes back all that the pod has. A pod that has nothing is fine.
func (m *Manager) Release(uid types.UID) {
	m.releaseAll(func(one types.UID) bool { return one == uid })
}

// Retain takes back what pods have that are not known. It is called once every source of
// pods has spoken.
func (m *Manager) Retain(known func(types.UID) bool) {
	m.releaseAll(func(uid types.UID) bool { return !known(uid) })
}

func (m *Manager) releaseAll(unwanted func(types.UID) bool) {
	m.mu.Lock()
	recorded := m.grants.drop(unwanted)
	drop(m.checked, unwanted)
	drop(m.waiting, unwanted)
	for at := range m.where {
		if unwanted(at.pod) {
			delete(m.where, at)
		}
	}
	m.mu.Unlock()
	if !recorded {
		return
	}
	if err := m.save(); err != nil {
		// The next change writes it too, and an agent that reads this one finds that nobody
		// knows the pod.
		m.deps.Log.Error("the return of a pod's devices was not written down", "err", err)
	}
}

func drop[V any](from map[types.UID]V, unwanted func(types.UID) bool) {
	maps.DeleteFunc(from, func(uid types.UID, _ V) bool { return unwanted(uid) })
}
