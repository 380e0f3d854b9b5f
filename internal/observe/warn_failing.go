package observe

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/cri"
)

// failingWarner records an event while relists fail: dead containers are not found then, so they
// are not removed. It records none of a short failure, such as a restart of the runtime.
type failingWarner struct {
	o    *Observer
	last time.Time // when an event was recorded
}

// warnPeriod is the time between two events, the period of the reference kubelet's container
// garbage collection.
const warnPeriod = time.Minute

// failed is called after a relist failed.
func (w *failingWarner) failed(err error) {
	now := w.o.deps.Clock.Now()
	if w.o.deps.Events == nil || w.o.Healthy() == nil || !w.last.IsZero() && now.Sub(w.last) < warnPeriod {
		return
	}
	w.last = now
	w.o.deps.Events.Eventf(w.o.deps.Node(), v1.EventTypeWarning, "ContainerGCFailed", "%s", cri.Text(err))
}
