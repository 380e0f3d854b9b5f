package device

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
)

// Allocate reserves the container's devices, on the given NUMA nodes if possible. It calls no
// plugin and does not block; Prepare does. It reserves nothing for a container that has its
// devices, that runs, or that waits for a plugin. A pod of which a container runs has had its
// devices since they were allocated, so Prepare need not verify them. The error texts are the
// reference kubelet's.
func (m *Manager) Allocate(_ context.Context, p *v1.Pod, c *v1.Container, affinity numa.Hint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	runs := m.deps.Running(p.UID, c.Name)
	if runs {
		m.allocations.verify(p.UID)
	}
	for resource, want := range m.requestsLocked(p, c) {
		key := allocationKey{p.UID, c.Name, resource}
		if g := m.allocations[key]; g != nil {
			if len(g.nodes) != want {
				return changedRequest(key, len(g.nodes), want)
			}
			continue
		}
		if affinity.Nodes != 0 {
			m.affinity[key] = affinity.Nodes
		}
		if m.pluginAbsentLocked(resource) || m.awaitedLocked(resource) || runs {
			continue
		}
		if _, err := m.reserveLocked(p, key, want, nil); err != nil {
			return err
		}
	}
	return nil
}

func changedRequest(key allocationKey, had, want int) error {
	return fmt.Errorf("pod %q container %q changed request for resource %q from %d to %d", key.pod, key.container, key.resource, had, want)
}

// pluginAbsentLocked reports whether the resource's plugin disconnected within pluginGrace.
func (m *Manager) pluginAbsentLocked(resource string) bool {
	s := m.resources[resource]
	return s != nil && s.active() == nil && !m.expired(s)
}

// reserveLocked reserves devices for the container. If prefer is given, it unlocks during the
// call to the plugin.
func (m *Manager) reserveLocked(p *v1.Pod, key allocationKey, count int, prefer preferFunc) (*allocation, error) {
	if err := m.checkHealthyLocked(key.resource); err != nil {
		return nil, err
	}
	if prefer != nil {
		ids, err := m.candidatesLocked(p, key).choose(key.resource, count, prefer)
		if err != nil {
			return nil, err
		}
		if m.availableLocked(p, key, ids) {
			return m.assignLocked(p, key, ids)
		}
		// Another pod took one of the devices during the call.
	}
	if g := m.allocations[key]; g != nil && m.availableLocked(p, key, g.ids()) {
		return g, nil
	}
	ids, err := m.candidatesLocked(p, key).choose(key.resource, count, nil)
	if err != nil {
		return nil, err
	}
	return m.assignLocked(p, key, ids)
}

// availableLocked reports whether all the devices are still candidates for the container.
func (m *Manager) availableLocked(p *v1.Pod, key allocationKey, ids []string) bool {
	now := m.candidatesLocked(p, key)
	all := union(union(now.reusable, now.aligned), union(now.unaligned, now.indifferent))
	return len(intersection(ids, all)) == len(ids)
}

// checkHealthyLocked returns an error if the resource has no healthy device.
func (m *Manager) checkHealthyLocked(resource string) error {
	s := m.resources[resource]
	switch {
	case s == nil || m.expired(s):
		return fmt.Errorf("cannot allocate unregistered device %s", resource)
	case len(s.healthy()) == 0:
		return fmt.Errorf("no healthy devices present; cannot allocate unhealthy devices %s", resource)
	}
	return nil
}

// rejectUnlessTransient makes an error fail the pod, unless it is transient.
func rejectUnlessTransient(err error) error {
	if err == nil || errors.Is(err, errTransient) {
		return err
	}
	return pod.RejectAllocation(err)
}

// errTransient marks an error after which the pod's worker retries.
var errTransient = errors.New("will be tried again")
