package probe

import (
	"container/heap"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// inherit takes over the published result of an earlier agent. It reports whether this container instance
// is published.
func (s *state) inherit(published *v1.PodStatus) bool {
	shown := publishedStatus(s.target, published)
	if shown == nil {
		return false
	}
	s.restore(savedResults{Started: shown.Started != nil && *shown.Started, Ready: shown.Ready})
	return true
}

// restore takes over the result of an earlier agent.
func (s *state) restore(was savedResults) {
	if was.passed(s.kind) {
		s.result = pod.Passed
	}
}

// inheritLate takes over a success that was published before this agent started, but is known only now, as
// that of a static pod's mirror, unless the probe has an outcome of its own. The caller holds mu.
func (p *Prober) inheritLate(s *state, published *v1.PodStatus) {
	if s.last != pod.ProbeUnknown || s.result == pod.Passed {
		return
	}
	if s.inherit(published); s.result == pod.Passed {
		p.markUnsaved(s.kind)
	}
	if !s.final() {
		return
	}
	if s.index >= 0 { // it has started before
		heap.Remove(&p.due, s.index)
	}
	p.scheduleAfterStartup(s.container)
}

// publishedStatus returns the published status of this container instance.
func publishedStatus(t Target, published *v1.PodStatus) *v1.ContainerStatus {
	if published == nil {
		return nil
	}
	for _, list := range [][]v1.ContainerStatus{published.ContainerStatuses, published.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == t.Container.Name && strings.HasSuffix(list[i].ContainerID, "://"+t.ContainerID) {
				return &list[i]
			}
		}
	}
	return nil
}
