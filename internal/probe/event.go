package probe

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// recordEvent records an event for an outcome that the user should see.
func (p *Prober) recordEvent(a probeRun, outcome Outcome) {
	ref := pod.EventRef(a.target.Pod, a.target.Container.Name)
	output := outcome.Output
	switch outcome.Result {
	case pod.Passed:
		if outcome.Warning {
			p.deps.Events.Eventf(ref, v1.EventTypeWarning, "ProbeWarning", "%s probe warning: %s", a.state.kind, output)
		}
	case pod.Failed:
		p.deps.Events.Eventf(ref, v1.EventTypeWarning, "Unhealthy", "%s probe failed: %s", a.state.kind, output)
	case pod.ProbeUnknown:
		p.deps.Events.Eventf(ref, v1.EventTypeWarning, "Unhealthy", "%s probe errored and resulted in unknown state: %s", a.state.kind, output)
	}
}
