package plan

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// planInit plans the init containers and reports whether the pod is past them, so that
// its main containers may run. They start in order: an ordinary one must have succeeded,
// a sidecar must have started, before the next begins.
func planInit(in Input, a *Actions) (initialized bool) {
	if len(in.Pod.Spec.InitContainers) == 0 {
		return true
	}
	if mainSeen(in) {
		keepSidecars(in, a)
		return true
	}
	for i := range in.Pod.Spec.InitContainers {
		c := &in.Pod.Spec.InitContainers[i]
		if next := planOneInit(in, c, a); !next {
			for j := i + 1; j < len(in.Pod.Spec.InitContainers); j++ {
				a.Upcoming = append(a.Upcoming, &in.Pod.Spec.InitContainers[j])
			}
			return false
		}
	}
	return true
}

// planOneInit plans one init container and reports whether the next may begin.
func planOneInit(in Input, c *v1.Container, a *Actions) (next bool) {
	latest, inSandbox := current(in, c.Name)
	if latest == nil || !inSandbox {
		a.Start = append(a.Start, startOf(in, c, pod.Init))
		return false
	}
	switch latest.State {
	case pod.Running:
		if replaceIfUnhealthy(in, c, pod.Init, latest, a) || !pod.IsSidecar(c) {
			return false
		}
		return started(in, c, latest)
	case pod.Exited:
		if !pod.IsSidecar(c) && latest.ExitCode == 0 {
			return true
		}
		if pod.ShouldRestart(in.Pod, c, pod.Init, latest.ExitCode) {
			a.Start = append(a.Start, startOf(in, c, pod.Init))
		}
		return false
	case pod.Created:
		a.Start = append(a.Start, startOf(in, c, pod.Init))
		return false
	default: // the runtime does not know: stop it and look again
		a.Kill = append(a.Kill, Kill{Container: *latest, Reason: NoSandbox})
		return false
	}
}

// keepSidecars restarts sidecars of a pod whose main containers have begun.
func keepSidecars(in Input, a *Actions) {
	for i := range in.Pod.Spec.InitContainers {
		c := &in.Pod.Spec.InitContainers[i]
		if !pod.IsSidecar(c) {
			continue
		}
		latest, inSandbox := current(in, c.Name)
		switch {
		case latest == nil || !inSandbox || latest.State == pod.Exited || latest.State == pod.Created:
			a.Start = append(a.Start, startOf(in, c, pod.Init))
		case latest.State == pod.Running:
			replaceIfUnhealthy(in, c, pod.Init, latest, a)
		}
	}
}

// mainSeen reports whether any main container has been started in the present sandbox.
func mainSeen(in Input) bool {
	for i := range in.Pod.Spec.Containers {
		latest, inSandbox := current(in, in.Pod.Spec.Containers[i].Name)
		if latest != nil && inSandbox && latest.State != pod.Created {
			return true
		}
	}
	return false
}

// started reports whether a running container counts as started: its startup probe, where
// it has one, has passed.
func started(in Input, c *v1.Container, latest *pod.Container) bool {
	return c.StartupProbe == nil || in.Health(latest.ID).Startup == pod.Passed
}
