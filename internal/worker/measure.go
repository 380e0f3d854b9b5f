package worker

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/meter"
)

// measure begins to time a step; what it returns ends that. Called under the lock, before
// the step takes note of what asked for it.
func (w *worker) measure(stage Stage, p *v1.Pod) (done func()) {
	operation := w.operation(stage)
	if stage == Syncing && !w.begun {
		w.begun = true
		meter.With(w.deps.Meters.Began, p)
	}
	if operation == "" || w.deps.Meters.Step == nil {
		return func() {}
	}
	since := w.deps.Clock.Now()
	if !w.pendingSince.IsZero() {
		since = w.pendingSince
	}
	return func() { w.deps.Meters.Step.Took(operation, w.deps.Clock.Since(since)) }
}

// operation names a step as the reference kubelet names what it does to a pod; "" is what
// it has no name for.
func (w *worker) operation(stage Stage) string {
	switch {
	case stage == Stopping:
		return "kill"
	case stage == Finishing:
		return "terminated"
	case stage != Syncing:
		return ""
	case !w.begun:
		return "create"
	case w.changed:
		return "update"
	}
	return "sync"
}
