package plan

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// planMain plans the containers that are the pod's purpose.
func planMain(in Input, a *Actions) {
	for i := range in.Pod.Spec.Containers {
		c := &in.Pod.Spec.Containers[i]
		latest := in.Observed.Latest(c.Name)
		switch {
		case latest == nil || latest.State == pod.Created || latest.State == pod.Exited:
			if due(in, c, pod.Main) {
				a.Start = append(a.Start, startOf(in, c, pod.Main))
			}
		case latest.State == pod.Running:
			replaceIfUnhealthy(in, c, pod.Main, latest, a)
		default: // stop it, and see how it ended
			a.Kill = append(a.Kill, Kill{Container: *latest, Kind: pod.Main, Reason: Lost})
		}
	}
}

// replaceIfUnhealthy asks for the end of a running container that no longer matches its
// spec or whose probes gave up on it, and for a new instance where its policy allows one.
// A changed container is always run again: it is the new one that the user asked for.
func replaceIfUnhealthy(in Input, c *v1.Container, kind pod.ContainerKind, latest *pod.Container, a *Actions) {
	health := in.Health(latest.ID)
	again := pod.RestartsIfKilled(in.Pod, c)
	var reason KillReason
	switch {
	case latest.Hash != "" && latest.Hash != in.Hash(c):
		reason, again = Changed, true
	case health.Liveness == pod.Failed:
		reason = Liveness
	case health.Startup == pod.Failed:
		reason = Startup
	default:
		return
	}
	a.Kill = append(a.Kill, Kill{Container: *latest, Kind: kind, Reason: reason, Restart: again})
	if again {
		a.Start = append(a.Start, startOf(in, c, kind))
	}
}
