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
	// Asked counts the amounts that resizes change: which resource, requests or limits, and
	// whether it is to add, remove, increase or decrease them.
	Asked func(resource, requirement, operation string)
	// Infeasible counts refusals for good, by why.
	Infeasible meter.CountOf
	// Accepted counts those that were granted after a wait, by what made room.
	Accepted meter.CountOf
	// Waited takes how long a resize waited for room, and how that ended: accepted, reverted
	// or terminated.
	Waited func(p *v1.Pod, resolution string, took time.Duration)
}

// How a wait for room ends, in the reference kubelet's words.
const (
	accepted   = "accepted"
	reverted   = "reverted"
	terminated = "terminated"
)

// measureAsked counts what changes between two wishes.
func (m Meters) measureAsked(before pod.Resources, p *v1.Pod) {
	if m.Asked == nil {
		return
	}
	for c, kind := range pod.Containers(p) {
		was, known := before.Containers[c.Name]
		if kind == pod.Ephemeral || !known {
			continue
		}
		for _, name := range []v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU} {
			m.askedOne(string(name), "requests", was.Requests[name], c.Resources.Requests[name])
			m.askedOne(string(name), "limits", was.Limits[name], c.Resources.Limits[name])
		}
	}
}

func (m Meters) askedOne(name, requirement string, was, now resource.Quantity) {
	switch order := now.Cmp(was); {
	case order == 0:
	case now.IsZero():
		m.Asked(name, requirement, "remove")
	case was.IsZero():
		m.Asked(name, requirement, "add")
	case order < 0:
		m.Asked(name, requirement, "decrease")
	default:
		m.Asked(name, requirement, "increase")
	}
}

// measureEnd takes the end of a wait, if there was one.
func (a *Allocator) measureEnd(before wish, resolution, trigger string) {
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
