package probe

import (
	"container/heap"
	"strings"
	"time"

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

// inheritWait is how long the startup probe of a container that an earlier agent started waits for the
// published status of its pod.
const inheritWait = 10 * time.Second

// hold delays a startup probe until the published status is known: if the probe has passed before, a further
// run could fail, and kill the container.
func (s *state) hold(published *v1.PodStatus) {
	if s.held = s.kind == startup && published == nil; s.held {
		s.at = s.at.Add(inheritWait)
	}
}

// inheritLate takes over a success that was published before this agent started, but is known only now, as
// that of a static pod's mirror, unless the probe has an outcome of its own. A container that has started
// stays started, unless its startup probe has failed as often as its threshold says. The caller holds mu.
func (p *Prober) inheritLate(s *state, published *v1.PodStatus) {
	if published == nil || s.final() || s.result == pod.Passed || (s.last != pod.ProbeUnknown && s.kind != startup) {
		return
	}
	if s.inherit(published); s.result == pod.Passed {
		p.markUnsaved(s.kind)
	}
	switch {
	case s.kind == startup && s.result == pod.Passed:
		if s.index >= 0 {
			heap.Remove(&p.due, s.index)
		}
		p.scheduleAfterStartup(s.container)
	case s.held && s.last == pod.ProbeUnknown && s.index >= 0:
		s.held, s.at = false, s.at.Add(-inheritWait)
		heap.Fix(&p.due, s.index)
	}
	p.heapChanged.Notify()
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
