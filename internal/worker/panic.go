package worker

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/contain"
	"swiftlet/internal/pod"
)

// panicked reports a panic of a step, also of a canceled one, and returns its back-off. The panic may have
// left the memory of the pod's steps inconsistent, so they begin with an empty one, as after a restart of
// the agent. The caller holds w.mu.
func (w *worker) panicked(stage Stage, p *contain.Panic) time.Duration {
	delay := w.nextDelay()
	w.steps = w.deps.NewSteps()
	w.deps.Panics.Report("worker", p, w.ref.Attr(), "stage", stage.String(), "retryIn", delay)
	if w.deps.Events != nil {
		w.deps.Events.Eventf(pod.EventRef(w.work.Pod, ""), v1.EventTypeWarning, "InternalError",
			"kubelet panicked while the pod was %s: %v; see the kubelet's log for the stack", stage, p.Value)
	}
	return delay
}
