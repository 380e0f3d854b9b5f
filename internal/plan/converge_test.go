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

// Whatever happens to a pod, it is brought to where it should be, and the promises hold all
// the way. What happens is drawn from a fixed seed.
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
			w.bury()
		}
	}
	t.Logf("%d specs, %d events, %d pods ended", len(specs()), steps, ended)
}

// step is what the agent does once: derive the status, plan, act. It reports whether
// anything was left to do.
func (w *world) step(deeds int) (more bool) {
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
	w.act(a, deeds)
	return true
}

// stop ends all that runs, as the agent does when a pod is done.
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
		w.failf("the pod was ended and is %s, %s once that is known", lone.Phase, w.status.Phase)
	}
	w.checkProgress(&before)
	w.checkCause()
	w.check(&w.status, w.plan())
}

// checkCause: a pod ends because an init container failed for good, or because all main
// containers ended for good.
func (w *world) checkCause() {
	w.t.Helper()
	for i := range w.pod.Spec.InitContainers {
		c := &w.pod.Spec.InitContainers[i]
		if one, _ := again(w.pod, c, pod.Init, w.exits[c.Name]); !one && w.exits[c.Name] != 0 {
			return
		}
	}
	for i := range w.pod.Spec.Containers {
		c := &w.pod.Spec.Containers[i]
		code, exited := w.exits[c.Name]
		if one, _ := again(w.pod, c, pod.Main, code); !exited || one {
			w.failf("the pod is ended, but %s is not done", c.Name)
		}
	}
}

// bury deletes the pod and then has everything of it forgotten but its status.
func (w *world) bury() {
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

// checkProgress: an end is final, and runs that were counted stay counted.
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

// settle lets the agent act until it has nothing to do. Now and then it dies on the way.
func (w *world) settle(rng *rand.Rand) {
	w.t.Helper()
	for range 20 {
		deeds := math.MaxInt
		if rng.IntN(8) == 0 {
			deeds = rng.IntN(4)
			w.history = append(w.history, fmt.Sprintf("die after %d", deeds))
		}
		if w.stopped || !w.step(deeds) {
			return
		}
	}
	w.failf("there is no end to it: %+v", w.plan())
}

// happen lets one thing happen to the pod.
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
			w.history = append(w.history, "forget "+c.ID)
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
		if health.Startup == pod.Unsure {
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

// lose makes the runtime forget what became of a container, or that there was one.
func (w *world) lose(c pod.Container, altogether bool) {
	w.history = append(w.history, fmt.Sprintf("%s is lost, altogether=%t", c.ID, altogether))
	if altogether {
		w.remove(c.ID)
		w.exits[c.Name] = 137
		return
	}
	i := slices.IndexFunc(w.seen.Containers, func(o pod.Container) bool { return o.ID == c.ID })
	w.seen.Containers[i].State = pod.Unknown
}

// calmDown lets nothing bad happen any more: init containers succeed and probes pass. The
// pod must come to rest, ended or with all that is due running and ready.
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
		one, _ := w.again(c, kind)
		shown := pod.FindStatus(&w.status, c.Name)
		done := latest == nil && pod.LastEnd(shown) != nil
		if kind == pod.Main && !done && one && (latest == nil || latest.State != pod.Running || !shown.Ready) {
			w.failf("%s is due and does not run", c.Name)
		}
		if kind == pod.Init && pod.IsSidecar(c) && (latest == nil || latest.State != pod.Running || !shown.Ready) {
			w.failf("%s does not run beside the others", c.Name)
		}
	}
	if w.status.Phase != v1.PodRunning {
		w.failf("the pod is at rest")
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
