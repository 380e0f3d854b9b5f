package plan

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// sandboxNeeded reports whether the pod needs a new sandbox, and its attempt number.
func sandboxNeeded(p *v1.Pod, o *pod.Observed) (needed bool, attempt uint32) {
	newest := o.Sandbox()
	if newest == nil {
		return true, 0
	}
	ready := 0
	for _, s := range o.Sandboxes {
		if s.Ready {
			ready++
		}
	}
	switch {
	case ready > 1, !newest.Ready:
		return true, newest.Attempt + 1
	case newest.HostNetwork != p.Spec.HostNetwork:
		return true, newest.Attempt + 1
	case !p.Spec.HostNetwork && len(newest.IPs) == 0:
		return true, newest.Attempt + 1
	}
	return false, newest.Attempt
}

// fresh plans a pod that has no usable sandbox. Containers that are done stay done: a pod
// that must not restart is not given a sandbox again for nothing.
func fresh(in Input, attempt uint32) Actions {
	var a Actions
	for _, c := range in.Observed.Live() {
		a.Kill = append(a.Kill, Kill{Container: c, Reason: NoSandbox})
	}
	if attempt > 0 && !mayRestart(in) {
		return a
	}
	var main []Start
	for i := range in.Pod.Spec.Containers {
		c := &in.Pod.Spec.Containers[i]
		if last := in.Observed.Latest(c.Name); last != nil && last.State == pod.Exited &&
			!pod.ShouldRestart(in.Pod, c, pod.Main, last.ExitCode) {
			continue
		}
		main = append(main, startOf(in, c, pod.Main))
	}
	if len(main) == 0 {
		return a
	}
	a.NewSandbox, a.Attempt = true, attempt
	if len(in.Pod.Spec.InitContainers) == 0 {
		a.Start = main
		return a
	}
	// With a new sandbox all init containers run again, in order.
	a.Start = []Start{startOf(in, &in.Pod.Spec.InitContainers[0], pod.Init)}
	for i := range in.Pod.Spec.InitContainers[1:] {
		a.Upcoming = append(a.Upcoming, &in.Pod.Spec.InitContainers[i+1])
	}
	for _, s := range main {
		a.Upcoming = append(a.Upcoming, s.Container)
	}
	return a
}

// mayRestart reports whether any container that already ran may run again, or whether none
// ran at all (the sandbox died before the first start).
func mayRestart(in Input) bool {
	ran := false
	for c, kind := range pod.Containers(in.Pod) {
		last := in.Observed.Latest(c.Name)
		if last == nil || last.State == pod.Created {
			continue
		}
		ran = true
		exit := last.ExitCode
		if last.State != pod.Exited {
			exit = exitKilled // it died with its sandbox
		}
		if kind == pod.Main && pod.ShouldRestart(in.Pod, c, kind, exit) {
			return true
		}
	}
	return !ran || initOnly(in)
}

// initOnly reports whether no main container ever ran: the pod was still starting, so a
// failed sandbox is made again as far as the init containers' policy allows.
func initOnly(in Input) bool {
	for i := range in.Pod.Spec.Containers {
		if last := in.Observed.Latest(in.Pod.Spec.Containers[i].Name); last != nil && last.State != pod.Created {
			return false
		}
	}
	for i := range in.Pod.Spec.InitContainers {
		c := &in.Pod.Spec.InitContainers[i]
		last := in.Observed.Latest(c.Name)
		if last != nil && last.State == pod.Exited && last.ExitCode != 0 &&
			!pod.ShouldRestart(in.Pod, c, pod.Init, last.ExitCode) {
			return false
		}
	}
	return true
}
