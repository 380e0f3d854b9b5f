package probe

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// maxOutput bounds what an event says of a probe's output.
const maxOutput = 10 * 1024

// tell makes an event of an answer that the user should see.
func (p *Prober) tell(a asked, answer Answer) {
	ref := pod.EventRef(a.target.Pod, a.target.Container.Name)
	output := answer.Output
	if len(output) > maxOutput {
		output = output[:maxOutput]
	}
	switch answer.Result {
	case pod.Passed:
		if answer.Doubt {
			p.deps.Events.Eventf(ref, v1.EventTypeWarning, "ProbeWarning", "%s probe warning: %s", a.state.kind, output)
		}
	case pod.Failed:
		p.deps.Events.Eventf(ref, v1.EventTypeWarning, "Unhealthy", "%s probe failed: %s", a.state.kind, output)
	case pod.Unsure:
		p.deps.Events.Eventf(ref, v1.EventTypeWarning, "Unhealthy", "%s probe errored and resulted in unknown state: %s", a.state.kind, output)
	}
}
