package device

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
)

// Allocate sets the container's devices aside, on the given NUMA nodes if they can be had
// there. It asks nobody and does not block: Prepare does. A container that has devices
// keeps them, one that runs has what it needs, and one whose plugin is away may yet get it.
// Errors are worded as the reference kubelet's.
func (m *Manager) Allocate(_ context.Context, p *v1.Pod, c *v1.Container, where numa.Hint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for resource, want := range m.asks(p, c) {
		at := place{p.UID, c.Name, resource}
		if g := m.grants[at]; g != nil {
			if len(g.nodes) != want {
				return changed(at, len(g.nodes), want)
			}
			continue
		}
		if where.Nodes != 0 {
			m.where[at] = where.Nodes
		}
		if m.away(resource) || m.deps.Running(p.UID, c.Name) {
			continue
		}
		if _, err := m.setAside(p, at, want, nil); err != nil {
			return err
		}
	}
	return nil
}

func changed(at place, had, want int) error {
	return fmt.Errorf("pod %q container %q changed request for resource %q from %d to %d", at.pod, at.container, at.resource, had, want)
}

// away: the resource has no plugin now, and had one so lately that it may come back. Called
// under the lock.
func (m *Manager) away(resource string) bool {
	s := m.resources[resource]
	return s != nil && s.inUse() == nil && !m.expired(s)
}

// setAside chooses devices for the place. Called under the lock, which it gives up while
// the plugin is asked what it prefers, where ask is given.
func (m *Manager) setAside(p *v1.Pod, at place, want int, ask prefer) (*grant, error) {
	if err := m.anyHealthy(at.resource); err != nil {
		return nil, err
	}
	if ask != nil {
		ids, err := m.supply(p, at).choose(at.resource, want, ask)
		if err != nil {
			return nil, err
		}
		if m.free(p, at, ids) {
			return m.settle(p, at, ids)
		}
		// Somebody was quicker while the plugin thought.
	}
	if g := m.grants[at]; g != nil && m.free(p, at, g.ids()) {
		return g, nil
	}
	ids, err := m.supply(p, at).choose(at.resource, want, nil)
	if err != nil {
		return nil, err
	}
	return m.settle(p, at, ids)
}

// free reports whether the place may still have the devices. Called under the lock.
func (m *Manager) free(p *v1.Pod, at place, ids []string) bool {
	now := m.supply(p, at)
	all := union(union(now.reusable, now.aligned), union(now.unaligned, now.indifferent))
	return len(intersection(ids, all)) == len(ids)
}

// anyHealthy says why nothing of the resource can be given at all. Called under the lock.
func (m *Manager) anyHealthy(resource string) error {
	s := m.resources[resource]
	switch {
	case s == nil || m.expired(s):
		return fmt.Errorf("cannot allocate unregistered device %s", resource)
	case len(s.healthy()) == 0:
		return fmt.Errorf("no healthy devices present; cannot allocate unhealthy devices %s", resource)
	}
	return nil
}

// refused makes an error end the pod, unless it is one that passes.
func refused(err error) error {
	if err == nil || errors.Is(err, errPasses) {
		return err
	}
	return pod.RejectAllocation(err)
}

// errPasses marks what is worth another try.
var errPasses = errors.New("will be tried again")
