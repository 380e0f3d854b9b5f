package allocation

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
)

// Meters measure resizes; each may be nil.
type Meters struct {
	// Requested counts requested changes by resource, requirement (requests or limits) and
	// operation (add, remove, increase or decrease).
	Requested func(resource, requirement, operation string)
	// Infeasible counts infeasible resizes by reason.
	Infeasible meter.CountOf
	// Accepted counts resizes that were granted after being deferred, by trigger.
	Accepted meter.CountOf
	// Waited takes how long a resize was deferred, and its resolution: accepted, reverted or
	// terminated.
	Waited func(p *v1.Pod, resolution string, took time.Duration)
}

// Resolutions of a deferred resize: values of a metric's label.
const (
	accepted   = "accepted"
	reverted   = "reverted"
	terminated = "terminated"
)

// countChanges counts the changes between earlier resources and those of the pod's spec.
func (m Meters) countChanges(before pod.Resources, p *v1.Pod) {
	if m.Requested == nil {
		return
	}
	for c, kind := range pod.Containers(p) {
		was, known := before.Containers[c.Name]
		if kind == pod.Ephemeral || !known {
			continue
		}
		for _, name := range []v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU} {
			m.countChange(string(name), "requests", was.Requests[name], c.Resources.Requests[name])
			m.countChange(string(name), "limits", was.Limits[name], c.Resources.Limits[name])
		}
	}
}

func (m Meters) countChange(name, requirement string, was, now resource.Quantity) {
	switch order := now.Cmp(was); {
	case order == 0:
	case now.IsZero():
		m.Requested(name, requirement, "remove")
	case was.IsZero():
		m.Requested(name, requirement, "add")
	case order < 0:
		m.Requested(name, requirement, "decrease")
	default:
		m.Requested(name, requirement, "increase")
	}
}

// measureWait measures the end of a deferred resize, if it was one.
func (a *Allocator) measureWait(before resizeState, resolution, trigger string) {
	if before.Pending == nil || before.Pending.Reason != v1.PodReasonDeferred {
		return
	}
	if resolution == accepted {
		a.deps.Meters.Accepted.Inc(trigger)
	}
	if a.deps.Meters.Waited != nil {
		a.deps.Meters.Waited(before.pod, resolution, a.deps.Clock.Since(before.since))
	}
}
