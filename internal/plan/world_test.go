package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/internal/podstatus"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a pod, a model of its runtime, and the history of both.
type world struct {
	t       *testing.T
	name    string
	pod     *v1.Pod
	seen    pod.Observed
	health  map[string]pod.Health
	status  v1.PodStatus
	stopped bool
	ticks   int
	history []string

	exits map[string]int32 // last exit code of each container since the last restart of all
	runs  map[string]bool  // restart counts that were used, by container
}

func newWorld(t *testing.T, name string, p *v1.Pod) *world {
	return &world{t: t, name: name, pod: p, health: map[string]pod.Health{}, exits: map[string]int32{}, runs: map[string]bool{}}
}

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("pod %s after %v\nseen %s, phase %s: %s", w.name, w.history, w.sketch(), w.status.Phase, fmt.Sprintf(format, args...))
}

// sketch formats the runtime's state as a line.
func (w *world) sketch() string {
	line := ""
	for _, b := range w.seen.Sandboxes {
		line += fmt.Sprintf("[%d ready=%t]", b.Attempt, b.Ready)
	}
	for _, c := range w.seen.Containers {
		line += fmt.Sprintf(" %s#%d:%s", c.Name, c.RestartCount, c.State)
		if c.State == pod.Exited {
			line += fmt.Sprintf("(%d)", c.ExitCode)
		}
	}
	return line
}

func (w *world) now() time.Time {
	w.ticks++
	return epoch.Add(time.Duration(w.ticks) * time.Second)
}

func (w *world) healthOf(id string) pod.Health { return w.health[id] }

// compute derives the status from the current state.
func (w *world) compute() v1.PodStatus {
	return podstatus.Compute(podstatus.Input{
		Pod: w.pod, Observed: &w.seen, Previous: w.status, Health: w.healthOf,
		Runtime: "model", Now: w.now(), Stopped: w.stopped,
	})
}

func (w *world) plan() plan.Actions {
	return plan.Compute(plan.Input{
		Pod: w.pod, Observed: &w.seen, Health: w.healthOf, Status: &w.status,
		Hash: func(*v1.Container) string { return "h" },
	})
}

func (w *world) sandbox(ready bool) {
	box := pod.Sandbox{ID: fmt.Sprintf("box-%d", w.ticks), Ready: ready, IPs: []string{"10.0.0.1"}, CreatedAt: w.now()}
	if last := w.seen.Sandbox(); last != nil {
		box.Attempt = last.Attempt + 1
	}
	w.seen.Sandboxes = slices.Insert(w.seen.Sandboxes, 0, box)
}

// add puts a new instance of a container into the runtime.
func (w *world) add(name string, count int, state pod.ContainerState, code int32) *pod.Container {
	at := w.now()
	c := pod.Container{
		ID: fmt.Sprintf("%s-%d", name, w.ticks), Name: name, RestartCount: count, State: state, Hash: "h",
		CreatedAt: at, StartedAt: at, ExitCode: code,
	}
	w.seen.Containers = slices.Insert(w.seen.Containers, 0, c)
	return &w.seen.Containers[0]
}

func (w *world) create(name string, count int) (id string) {
	run := fmt.Sprintf("%s#%d", name, count)
	if w.runs[run] {
		w.failf("%s is created twice", run)
	}
	w.runs[run] = true
	return w.add(name, count, pod.Created, 0).ID
}

func (w *world) exit(id string, code int32) {
	for i := range w.seen.Containers {
		if c := &w.seen.Containers[i]; c.ID == id {
			c.State, c.ExitCode, c.FinishedAt = pod.Exited, code, w.now()
			w.exits[c.Name] = code
		}
	}
}

func (w *world) remove(id string) {
	w.seen.Containers = slices.DeleteFunc(w.seen.Containers, func(c pod.Container) bool { return c.ID == id })
}

// act executes a plan. A kubelet that crashes stops after so many actions.
func (w *world) act(a plan.Actions, actions int) {
	do := func(f func()) {
		if actions > 0 {
			f()
		}
		actions--
	}
	for _, c := range a.Reset {
		do(func() {
			w.remove(c.ID)
			delete(w.exits, c.Name)
		})
	}
	for _, k := range a.Kill {
		do(func() { w.exit(k.Container.ID, 137) })
	}
	if a.NewSandbox {
		do(func() {
			for i := range w.seen.Sandboxes {
				w.seen.Sandboxes[i].Ready = false
			}
			w.sandbox(true)
			w.seen.Sandboxes[0].Attempt = a.Attempt
		})
	}
	for _, s := range a.Start {
		id := s.Adopt
		if id == "" {
			do(func() { id = w.create(s.Container.Name, s.RestartCount) })
		}
		do(func() {
			i := slices.IndexFunc(w.seen.Containers, func(c pod.Container) bool { return c.ID == id })
			w.seen.Containers[i].State = pod.Running
			w.health[id] = pod.Health{Liveness: pod.Passed, Readiness: pod.Failed}
		})
	}
}
