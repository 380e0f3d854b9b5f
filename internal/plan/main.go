package plan

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// planMain plans the containers that are the pod's purpose.
func planMain(in Input, a *Actions) {
	for i := range in.Pod.Spec.Containers {
		c := &in.Pod.Spec.Containers[i]
		latest, inSandbox := current(in, c.Name)
		switch {
		case latest == nil, latest.State == pod.Created:
			a.Start = append(a.Start, startOf(in, c, pod.Main))
		case latest.State == pod.Exited:
			if pod.ShouldRestart(in.Pod, c, pod.Main, latest.ExitCode) {
				a.Start = append(a.Start, startOf(in, c, pod.Main))
			}
		case latest.State == pod.Running && inSandbox:
			replaceIfUnhealthy(in, c, pod.Main, latest, a)
		default: // of an earlier sandbox, or in a state the runtime cannot name
			a.Kill = append(a.Kill, Kill{Container: *latest, Reason: NoSandbox})
		}
	}
}

// startEphemeral starts debug containers that were never seen. They are never restarted
// and wait for nothing.
func startEphemeral(in Input, a *Actions) {
	for i := range in.Pod.Spec.EphemeralContainers {
		c := v1.Container(in.Pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		if in.Observed.Latest(c.Name) == nil {
			a.Start = append(a.Start, startOf(in, &c, pod.Ephemeral))
		}
	}
}

// replaceIfUnhealthy asks for the end of a running container that no longer matches its
// spec or whose probes gave up on it, and for a new instance where its policy allows one.
// A changed container is always run again: it is the new one that the user asked for.
func replaceIfUnhealthy(in Input, c *v1.Container, kind pod.ContainerKind, latest *pod.Container, a *Actions) (replaced bool) {
	health := in.Health(latest.ID)
	var reason KillReason
	switch {
	case latest.Hash != "" && latest.Hash != in.Hash(c):
		reason = Changed
	case health.Startup == pod.Failed:
		reason = Startup
	case health.Liveness == pod.Failed:
		reason = Liveness
	default:
		return false
	}
	again := reason == Changed || pod.ShouldRestart(in.Pod, c, kind, exitKilled)
	a.Kill = append(a.Kill, Kill{Container: *latest, Reason: reason, Restart: again})
	if again {
		a.Start = append(a.Start, startOf(in, c, kind))
	}
	return true
}
