package plan

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// planInit plans the init containers and reports whether the pod is past them, so that
// its main containers may run. They start in order: an ordinary one must have succeeded,
// a sidecar must have started, before the next begins.
//
// The last one that is known of tells how far the pod has come. Those before it need not
// be known any more: dead containers may be removed at any time, and their work is done.
func planInit(in Input, a *Actions) (initialized bool) {
	inits := in.Pod.Spec.InitContainers
	if len(inits) == 0 {
		return true
	}
	if in.Observed.Begun(in.Pod) {
		keepSidecars(in, inits, a)
		return true
	}
	last := len(inits) - 1
	for last >= 0 && in.Observed.Current(inits[last].Name) == nil {
		last--
	}
	if last >= 0 {
		keepSidecars(in, inits[:last], a)
		if next := planLastInit(in, &inits[last], a); !next {
			return false
		}
	}
	if last+1 == len(inits) {
		return true
	}
	a.Start = append(a.Start, startOf(in, &inits[last+1], pod.Init))
	return false
}

// planLastInit plans the init container that the pod has come to and reports whether the
// next may begin.
func planLastInit(in Input, c *v1.Container, a *Actions) (next bool) {
	if pod.IsSidecar(c) {
		return keepSidecar(in, c, a)
	}
	latest := in.Observed.Current(c.Name)
	switch latest.State {
	case pod.Running:
		// It runs to its end, even if its image was changed meanwhile.
		return false
	case pod.Exited:
		if latest.ExitCode == 0 {
			return true
		}
		a.Start = append(a.Start, startOf(in, c, pod.Init))
	case pod.Created:
		a.Start = append(a.Start, startOf(in, c, pod.Init))
	default: // stop it, and see how it ended
		a.Kill = append(a.Kill, Kill{Container: *latest, Kind: pod.Init, Reason: Lost})
	}
	return false
}

// keepSidecars has those sidecars running that the pod has come past.
func keepSidecars(in Input, inits []v1.Container, a *Actions) {
	for i := range inits {
		if c := &inits[i]; pod.IsSidecar(c) {
			keepSidecar(in, c, a)
		}
	}
}

// keepSidecar has one sidecar running and reports whether it has started.
func keepSidecar(in Input, c *v1.Container, a *Actions) (started bool) {
	latest := in.Observed.Current(c.Name)
	if latest == nil || latest.State == pod.Exited || latest.State == pod.Created {
		a.Start = append(a.Start, startOf(in, c, pod.Init))
		return false
	}
	if latest.State == pod.Unknown {
		a.Kill = append(a.Kill, Kill{Container: *latest, Kind: pod.Init, Reason: Lost})
		return false
	}
	started = c.StartupProbe == nil || in.Health(latest.ID).Startup == pod.Passed
	replaceIfUnhealthy(in, c, pod.Init, latest, a)
	return started
}
