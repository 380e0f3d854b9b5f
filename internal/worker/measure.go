package worker

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/meter"
)

// measure starts to time a step; done stops it. The caller holds w.mu and has not reset
// pendingSince yet.
func (w *worker) measure(stage Stage, p *v1.Pod) (done func()) {
	operation := w.operation(stage)
	if stage == Syncing && !w.syncStarted {
		w.syncStarted = true
		meter.With(w.deps.Meters.FirstSync, p)
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

// operation is the operation_type label of a step in the reference kubelet's metrics; "" for
// a step without one.
func (w *worker) operation(stage Stage) string {
	switch {
	case stage == Stopping:
		return "kill"
	case stage == Finishing:
		return "terminated"
	case stage != Syncing:
		return ""
	case !w.syncStarted:
		return "create"
	case w.changed:
		return "update"
	}
	return "sync"
}
