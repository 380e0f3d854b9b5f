package plan

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// planMain plans the main containers.
func planMain(in Input, a *Actions) {
	for i := range in.Pod.Spec.Containers {
		c := &in.Pod.Spec.Containers[i]
		latest := in.Observed.Latest(c.Name)
		switch {
		case latest == nil || latest.State == pod.Created || latest.State == pod.Exited:
			if shouldRun(in, c, pod.Main) {
				a.Start = append(a.Start, newStart(in, c, pod.Main))
			}
		case latest.State == pod.Running:
			replaceIfUnhealthy(in, c, pod.Main, latest, a)
		default: // stop it; the next plan depends on its exit code
			a.Kill = append(a.Kill, Kill{Container: *latest, Kind: pod.Main, Reason: UnknownState})
		}
	}
}

// replaceIfUnhealthy kills a running container whose spec has changed or whose liveness or startup
// probe has failed, and starts a new instance if its restart policy allows it. A changed container
// always restarts.
func replaceIfUnhealthy(in Input, c *v1.Container, kind pod.ContainerKind, latest *pod.Container, a *Actions) {
	health := in.Health(latest.ID)
	restart := pod.RestartsIfKilled(in.Pod, c)
	var reason KillReason
	switch {
	case latest.Hash != "" && latest.Hash != in.Hash(c):
		reason, restart = Changed, true
	case health.Liveness == pod.Failed:
		reason = Liveness
	case health.Startup == pod.Failed:
		reason = Startup
	default:
		return
	}
	a.Kill = append(a.Kill, Kill{Container: *latest, Kind: kind, Reason: reason, Restart: restart})
	if restart {
		a.Start = append(a.Start, newStart(in, c, kind))
	}
}
