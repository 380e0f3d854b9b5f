package device

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// awaitPlugins returns a *pod.WaitError while a container that is to start needs a device that no
// plugin offers, on a node where pods wait for that. The next list of devices wakes the pod.
func (m *Manager) awaitPlugins(p *v1.Pod, observed *pod.Observed) error {
	m.mu.Lock()
	missing := strings.Join(m.missingLocked(p, observed), ", ")
	report := missing != "" && m.waitLocked(p, missing)
	m.mu.Unlock()
	if missing == "" {
		return nil
	}
	if report {
		m.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "WaitingForDevicePlugin",
			"No device plugin offers %s. The pod waits until one does.", missing)
	}
	return &pod.WaitError{Waiting: pod.Waiting{Reason: pod.ReasonWaitingForDevice, Message: "no device plugin offers " + missing}}
}

// missingLocked returns the resources, in order of name, that the pod waits for. A container that
// runs, or that has its devices, needs none.
func (m *Manager) missingLocked(p *v1.Pod, observed *pod.Observed) []string {
	if !m.cfg.AwaitPlugins {
		return nil
	}
	var missing []string
	for c := range containersInOrder(p) {
		if running(observed, c.Name) {
			continue
		}
		for resource := range m.requestsLocked(p, c) {
			if !m.allocations[allocationKey{p.UID, c.Name, resource}].verified() && m.awaitedLocked(resource) {
				missing = append(missing, resource)
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// awaitedLocked reports whether pods wait for the resource: no plugin has a healthy device of it.
func (m *Manager) awaitedLocked(resource string) bool {
	return m.cfg.AwaitPlugins && len(m.resources[resource].healthy()) == 0
}

// waitLocked makes the next list of devices wake the pod. It reports whether the pod did not wait for
// the same resources before.
func (m *Manager) waitLocked(p *v1.Pod, resources string) (begins bool) {
	begins = m.waiting[p.UID] != resources
	m.waiting[p.UID] = resources
	return begins
}
