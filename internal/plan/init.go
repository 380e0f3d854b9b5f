package plan

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// planInit plans the init containers and reports whether the pod is initialized, so that its main
// containers may run. Init containers start in order: before the next starts, a sidecar must have
// started and any other init container must have succeeded.
//
// The last init container that has an instance is the current one. Those before it have completed;
// their instances may have been removed.
func planInit(in Input, a *Actions) (initialized bool) {
	inits := in.Pod.Spec.InitContainers
	if len(inits) == 0 {
		return true
	}
	if in.Observed.MainCreated(in.Pod) {
		planSidecars(in, inits, a)
		return true
	}
	last := len(inits) - 1
	for last >= 0 && in.Observed.Current(inits[last].Name) == nil {
		last--
	}
	if last >= 0 {
		planSidecars(in, inits[:last], a)
		if next := planCurrentInit(in, &inits[last], a); !next {
			return false
		}
	}
	if last+1 == len(inits) {
		return true
	}
	a.Start = append(a.Start, newStart(in, &inits[last+1], pod.Init))
	return false
}

// planCurrentInit plans the current init container and reports whether the next may start.
func planCurrentInit(in Input, c *v1.Container, a *Actions) (next bool) {
	if pod.IsSidecar(c) {
		return planSidecar(in, c, a)
	}
	latest := in.Observed.Current(c.Name)
	switch latest.State {
	case pod.Running:
		// It runs to completion, even if its image changes.
		return false
	case pod.Exited:
		if latest.ExitCode == 0 {
			return true
		}
		a.Start = append(a.Start, newStart(in, c, pod.Init))
	case pod.Created:
		a.Start = append(a.Start, newStart(in, c, pod.Init))
	default: // stop it; the next plan depends on its exit code
		a.Kill = append(a.Kill, Kill{Container: *latest, Kind: pod.Init, Reason: UnknownState})
	}
	return false
}

// planSidecars plans the sidecars among the init containers that have started.
func planSidecars(in Input, inits []v1.Container, a *Actions) {
	for i := range inits {
		if c := &inits[i]; pod.IsSidecar(c) {
			planSidecar(in, c, a)
		}
	}
}

// planSidecar plans one sidecar and reports whether it has started.
func planSidecar(in Input, c *v1.Container, a *Actions) (started bool) {
	latest := in.Observed.Current(c.Name)
	if latest == nil || latest.State == pod.Exited || latest.State == pod.Created {
		a.Start = append(a.Start, newStart(in, c, pod.Init))
		return false
	}
	if latest.State == pod.Unknown {
		a.Kill = append(a.Kill, Kill{Container: *latest, Kind: pod.Init, Reason: UnknownState})
		return false
	}
	started = c.StartupProbe == nil || in.Health(latest.ID).Startup == pod.Passed
	replaceIfUnhealthy(in, c, pod.Init, latest, a)
	return started
}
