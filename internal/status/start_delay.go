package status

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// startDelay is how long the first status of a pod waits while its start has met no problem. Most pods are up by
// then, which costs one write instead of two.
const startDelay = 500 * time.Millisecond

// startDelayOf is how long the status may still wait; not positive if it is to be written now.
func (p *Publisher) startDelayOf(e *entry) time.Duration {
	if e.finished || e.failures > 0 || e.resourceVersion != "" || e.pod.DeletionTimestamp != nil || !isStarting(&e.status) {
		return 0
	}
	if object := p.apiObject(e.pod); object == nil || !object.Status.StartTime.IsZero() { // a kubelet has written a status
		return 0
	}
	return startDelay - p.clock.Since(e.since)
}

// isStarting reports whether the status says no more than that the containers are not created yet.
func isStarting(s *v1.PodStatus) bool {
	if s.Phase != v1.PodPending || s.Reason != "" || s.Message != "" {
		return false
	}
	starting := func(c v1.ContainerStatus) bool {
		w := c.State.Waiting
		return w != nil && w.Message == "" && (w.Reason == pod.ReasonCreating || w.Reason == pod.ReasonInitializing) && c.LastTerminationState == v1.ContainerState{}
	}
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		if slices.ContainsFunc(list, func(c v1.ContainerStatus) bool { return !starting(c) }) {
			return false
		}
	}
	return len(s.ContainerStatuses) > 0
}
