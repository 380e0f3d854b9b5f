package admit

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// active lists the active pods without those whose status has a terminal phase, even if their
// workers have yet to finish: the scheduler counts their resources as free from then on. After
// a restart of the agent, these are all pods that had ended before.
func (a *Admission) active() []*v1.Pod {
	return slices.DeleteFunc(a.deps.Workers.Active(), func(p *v1.Pod) bool {
		phase := p.Status.Phase
		if a.deps.Status != nil {
			if status, found := a.deps.Status(p.UID); found {
				phase = status.Phase
			}
		}
		return pod.IsTerminal(phase)
	})
}
