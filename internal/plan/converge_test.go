package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Whatever happens to a pod, it converges, and the invariants hold after every step. Events are drawn
// from a fixed seed.
func TestEveryPodConverges(t *testing.T) {
	walks := 6
	if testing.Short() {
		walks = 1
	}
	rng := rand.New(rand.NewPCG(3, 4))
	ended, steps := 0, 0
	for _, s := range specs() {
		for range walks {
			w := newWorld(t, s.name, s.pod)
			w.settle(rng)
			for range 2 + rng.IntN(8) {
				if w.stopped {
					break
				}
				w.happen(rng)
				w.settle(rng)
			}
			w.calmDown(rng)
			steps += len(w.history)
			if w.stopped {
				ended++
			}
			w.delete()
		}
	}
	t.Logf("%d specs, %d events, %d pods ended", len(specs()), steps, ended)
}

// step derives the status, plans and acts once. It reports whether the plan was not empty.
func (w *world) step(actions int) (more bool) {
	w.t.Helper()
	before := w.status
	w.status = w.compute()
	a := w.plan()
	w.check(&w.status, a)
	w.checkProgress(&before)
	if pod.IsTerminal(w.status.Phase) || a.End {
		w.stop()
		return false
	}
	if a.Idle() {
		return false
	}
	w.act(a, actions)
	return true
}

// stop stops all containers, as the kubelet does when a pod has ended.
func (w *world) stop() {
	w.t.Helper()
	before := w.status
	for _, c := range w.seen.Live() {
		w.exit(c.ID, 137)
	}
	lone := w.compute()
	w.stopped = true
	w.status = w.compute()
	if !pod.IsTerminal(lone.Phase) || !pod.IsTerminal(w.status.Phase) {
		w.failf("the pod was stopped and is %s, %s once it is marked as stopped", lone.Phase, w.status.Phase)
	}
	w.checkProgress(&before)
	w.checkCause()
	w.check(&w.status, w.plan())
}

// checkCause: a pod ends because an init container failed without a restart, or because no main
// container restarts.
func (w *world) checkCause() {
	w.t.Helper()
	for i := range w.pod.Spec.InitContainers {
		c := &w.pod.Spec.InitContainers[i]
		if one, _ := restarts(w.pod, c, pod.Init, w.exits[c.Name]); !one && w.exits[c.Name] != 0 {
			return
		}
	}
	for i := range w.pod.Spec.Containers {
		c := &w.pod.Spec.Containers[i]
		code, exited := w.exits[c.Name]
		if one, _ := restarts(w.pod, c, pod.Main, code); !exited || one {
			w.failf("the pod has ended, but %s has not", c.Name)
		}
	}
}

// delete deletes the pod and then removes everything from the runtime.
func (w *world) delete() {
	w.t.Helper()
	before := w.status
	for _, c := range w.seen.Live() {
		w.exit(c.ID, 0)
	}
	w.stopped = true
	w.status = w.compute()
	w.checkProgress(&before)
	if !pod.IsTerminal(w.status.Phase) {
		w.failf("the pod was deleted")
	}
	before = w.status
	w.stopped, w.seen.Containers, w.seen.Sandboxes = false, nil, nil
	w.status = w.compute()
	w.checkProgress(&before)
	w.check(&w.status, w.plan())
}

// checkProgress: a terminal phase does not change, and restart counts do not decrease.
func (w *world) checkProgress(before *v1.PodStatus) {
	w.t.Helper()
	if pod.IsTerminal(before.Phase) && w.status.Phase != before.Phase {
		w.failf("was %s", before.Phase)
	}
	for c := range pod.Containers(w.pod) {
		was, is := pod.FindStatus(before, c.Name), pod.FindStatus(&w.status, c.Name)
		if was != nil && is.RestartCount < was.RestartCount {
			w.failf("%s was restarted %d times, now %d", c.Name, was.RestartCount, is.RestartCount)
		}
	}
}

// settle runs steps until the plan is empty. Sometimes the kubelet crashes in a step.
func (w *world) settle(rng *rand.Rand) {
	w.t.Helper()
	for range 20 {
		actions := math.MaxInt
		if rng.IntN(8) == 0 {
			actions = rng.IntN(4)
			w.history = append(w.history, fmt.Sprintf("crash after %d actions", actions))
		}
		if w.stopped || !w.step(actions) {
			return
		}
	}
	w.failf("the pod does not converge: %+v", w.plan())
}

// happen draws one event.
func (w *world) happen(rng *rand.Rand) {
	if rng.IntN(12) == 0 {
		w.history = append(w.history, "sandbox dies")
		for i := range w.seen.Sandboxes {
			w.seen.Sandboxes[i].Ready = false
		}
		return
	}
	if len(w.seen.Containers) == 0 {
		return
	}
	c := w.seen.Containers[rng.IntN(len(w.seen.Containers))]
	if c.State != pod.Running {
		if c.State == pod.Exited {
			w.history = append(w.history, "remove "+c.ID)
			w.remove(c.ID)
		}
		return
	}
	spec := pod.FindContainer(w.pod, c.Name)
	health := w.health[c.ID]
	switch rng.IntN(6) {
	case 0, 1, 2:
		code := exits[rng.IntN(len(exits))]
		w.history = append(w.history, fmt.Sprintf("%s exits %d", c.ID, code))
		w.exit(c.ID, code)
		return
	case 3:
		w.lose(c, rng.IntN(2) == 0)
		return
	case 4:
		if health.Startup == pod.ProbeUnknown {
			health.Startup = []pod.Result{pod.Passed, pod.Failed}[rng.IntN(2)]
		} else {
			health.Liveness = pod.Failed
		}
	case 5:
		health.Readiness = pod.Passed
	}
	if spec.StartupProbe != nil {
		w.history = append(w.history, fmt.Sprintf("%s is %+v", c.ID, health))
		w.health[c.ID] = health
	}
}

// lose makes the runtime lose the state of a container, or the container.
func (w *world) lose(c pod.Container, removed bool) {
	w.history = append(w.history, fmt.Sprintf("%s is lost, removed=%t", c.ID, removed))
	if removed {
		w.remove(c.ID)
		w.exits[c.Name] = 137
		return
	}
	i := slices.IndexFunc(w.seen.Containers, func(o pod.Container) bool { return o.ID == c.ID })
	w.seen.Containers[i].State = pod.Unknown
}

// calmDown lets init containers succeed and probes pass. The pod must converge: it has ended, or all
// containers that should run are running and ready.
func (w *world) calmDown(rng *rand.Rand) {
	w.t.Helper()
	for range 10 {
		w.settle(rng)
		if w.stopped {
			return
		}
		w.succeed()
	}
	w.settle(rng)
	if w.stopped {
		return
	}
	for c, kind := range pod.Containers(w.pod) {
		latest := w.seen.Latest(c.Name)
		one, _ := w.restarts(c, kind)
		shown := pod.FindStatus(&w.status, c.Name)
		done := latest == nil && pod.LastTermination(shown) != nil
		if kind == pod.Main && !done && one && (latest == nil || latest.State != pod.Running || !shown.Ready) {
			w.failf("%s should run and does not", c.Name)
		}
		if kind == pod.Init && pod.IsSidecar(c) && (latest == nil || latest.State != pod.Running || !shown.Ready) {
			w.failf("sidecar %s does not run", c.Name)
		}
	}
	if w.status.Phase != v1.PodRunning {
		w.failf("the converged pod is not running")
	}
}

func (w *world) succeed() {
	for c, kind := range pod.Containers(w.pod) {
		latest := w.seen.Latest(c.Name)
		if latest == nil || latest.State != pod.Running {
			continue
		}
		if kind == pod.Init && !pod.IsSidecar(c) {
			w.history = append(w.history, latest.ID+" succeeds")
			w.exit(latest.ID, 0)
		} else if c.StartupProbe != nil {
			w.health[latest.ID] = pod.Health{Startup: pod.Passed, Liveness: pod.Passed, Readiness: pod.Passed}
		}
	}
}
