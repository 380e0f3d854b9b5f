package admit

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// active leaves out the pods that are shown as ended, though their workers are not done: the
// scheduler counts on their room from then on. After a restart those are all that had ended.
func (a *Admission) active() []*v1.Pod {
	return slices.DeleteFunc(a.deps.Workers.Active(), func(p *v1.Pod) bool {
		phase := p.Status.Phase
		if a.deps.Shown != nil {
			if shown, derived := a.deps.Shown(p.UID); derived {
				phase = shown.Phase
			}
		}
		return pod.IsTerminal(phase)
	})
}
