package plan_test

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
)

// check checks the invariants of a plan and its status.
func (w *world) check(s *v1.PodStatus, a plan.Actions) {
	w.t.Helper()
	w.checkExclusive(a)
	w.checkStarts(a)
	w.checkOrder(a)
	w.checkEnd(s, a)
	w.checkReady(s)
}

// checkExclusive: an end and a reset exclude other actions, and a sandbox is created only if none is
// ready.
func (w *world) checkExclusive(a plan.Actions) {
	w.t.Helper()
	others := a.NewSandbox || len(a.Kill) > 0 || len(a.Start) > 0
	if (a.End && (others || len(a.Reset) > 0)) || (len(a.Reset) > 0 && others) {
		w.failf("an end or a reset with other actions: %+v", a)
	}
	box := w.seen.Sandbox()
	if good := box != nil && box.Ready; good == a.NewSandbox && (good || len(a.Start) > 0) {
		w.failf("good sandbox %t, new one %t: %+v", good, a.NewSandbox, a.Start)
	}
}

// checkStarts: a container starts at most once and not while it runs; it restarts only by its policy
// or in a new sandbox, and never with a restart count that was used.
func (w *world) checkStarts(a plan.Actions) {
	w.t.Helper()
	started := map[string]bool{}
	for _, s := range a.Start {
		name := s.Container.Name
		if started[name] {
			w.failf("%s is started twice", name)
		}
		started[name] = true
		latest := w.seen.Latest(name)
		if latest == nil {
			continue
		}
		if s.Adopt != latest.ID && s.RestartCount <= latest.RestartCount {
			w.failf("restart count #%[2]d of %[1]s is used twice", name, s.RestartCount)
		}
		switch latest.State {
		case pod.Running:
			if !slices.ContainsFunc(a.Kill, func(k plan.Kill) bool { return k.Container.ID == latest.ID }) {
				w.failf("%s is started while it runs", name)
			}
		case pod.Exited:
			newSandbox := s.Kind == pod.Init && w.seen.Current(name) == nil
			if one, _ := restarts(w.pod, s.Container, s.Kind, latest.ExitCode); !one && !newSandbox && !a.NewSandbox {
				w.failf("%s is done and started again", name)
			}
			if one, _ := restarts(w.pod, s.Container, s.Kind, latest.ExitCode); !one && s.Kind != pod.Init {
				w.failf("%s is done and started again", name)
			}
		}
	}
}

// checkOrder: an init container starts after the one before it has completed, main containers after
// the last. The current init container is the last one with an instance in the current sandbox.
func (w *world) checkOrder(a plan.Actions) {
	w.t.Helper()
	inits := w.pod.Spec.InitContainers
	last := len(inits) - 1
	for last >= 0 && w.seen.Current(inits[last].Name) == nil {
		last--
	}
	for _, s := range a.Start {
		turn := slices.IndexFunc(inits, func(c v1.Container) bool { return c.Name == s.Container.Name })
		if turn < 0 {
			turn = len(inits)
		}
		if s.Kind == pod.Ephemeral || w.seen.MainCreated(w.pod) || turn <= last {
			continue
		}
		if a.NewSandbox {
			last = -1
		}
		if turn != last+1 {
			w.failf("%s starts out of order", s.Container.Name)
		}
		if last >= 0 && !w.passed(&inits[last]) {
			w.failf("%s starts before %s has completed", s.Container.Name, inits[last].Name)
		}
	}
}

// passed reports whether a sidecar has started or another init container has succeeded.
func (w *world) passed(c *v1.Container) bool {
	latest := w.seen.Current(c.Name)
	if pod.IsSidecar(c) {
		return latest.State == pod.Running && w.health[latest.ID].Startup == pod.Passed
	}
	return latest.State == pod.Exited && latest.ExitCode == 0
}

// checkEnd: plan and status agree on whether a pod has ended. Sidecars outlive main containers.
func (w *world) checkEnd(s *v1.PodStatus, a plan.Actions) {
	w.t.Helper()
	if pod.IsTerminal(s.Phase) && !a.End {
		w.failf("a pod that has ended (%s) has actions: %+v", s.Phase, a)
	}
	runs, initRuns, initDead := false, false, false
	for c, kind := range pod.Containers(w.pod) {
		latest := w.seen.Latest(c.Name)
		live := latest != nil && latest.State == pod.Running
		runs = runs || (kind == pod.Main && live)
		initRuns = initRuns || (kind == pod.Init && live)
		if one, _ := w.restarts(c, kind); kind == pod.Init && latest != nil && latest.State == pod.Exited && latest.ExitCode != 0 && !one {
			initDead = true
		}
	}
	if a.End && runs && !initDead {
		w.failf("the pod ends while a main container runs")
	}
	for i := range w.pod.Spec.InitContainers {
		c := &w.pod.Spec.InitContainers[i]
		if latest := w.seen.Current(c.Name); a.Idle() && pod.IsSidecar(c) && latest != nil && latest.State != pod.Running {
			w.failf("%s does not run and the plan is empty", c.Name)
		}
	}
	if a.Idle() && !runs && !initRuns {
		w.failf("nothing runs and the plan is empty")
	}
	if s.Phase == v1.PodSucceeded {
		for _, c := range s.ContainerStatuses {
			if c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
				w.failf("%s did not succeed, the pod did", c.Name)
			}
		}
	}
}

func (w *world) restarts(c *v1.Container, kind pod.ContainerKind) (one, all bool) {
	latest := w.seen.Latest(c.Name)
	if latest == nil || latest.State != pod.Exited {
		return true, false
	}
	return restarts(w.pod, c, kind, latest.ExitCode)
}

// checkReady: a pod is ready only if all main containers and sidecars are.
func (w *world) checkReady(s *v1.PodStatus) {
	w.t.Helper()
	i := slices.IndexFunc(s.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReady })
	if s.Conditions[i].Status != v1.ConditionTrue {
		return
	}
	for c, kind := range pod.Containers(w.pod) {
		if kind == pod.Ephemeral || (kind == pod.Init && !pod.IsSidecar(c)) {
			continue
		}
		latest := w.seen.Latest(c.Name)
		probed := c.ReadinessProbe != nil
		if latest == nil || latest.State != pod.Running || (probed && w.health[latest.ID].Readiness != pod.Passed) {
			w.failf("the pod is ready, %s is not", c.Name)
		}
	}
}
