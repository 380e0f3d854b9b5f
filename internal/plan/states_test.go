package plan_test

import (
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// A situation is a state of one container.
type situation struct {
	state  pod.ContainerState
	none   bool // the runtime has no instance of it
	code   int32
	health pod.Health
}

func situations(c *v1.Container) []situation {
	all := []situation{{none: true}, {state: pod.Created}, {state: pod.Unknown}}
	for _, code := range exits {
		all = append(all, situation{state: pod.Exited, code: code})
	}
	if c.StartupProbe == nil {
		return append(all, situation{state: pod.Running})
	}
	for _, startup := range []pod.Result{pod.ProbeUnknown, pod.Passed, pod.Failed} {
		for _, liveness := range []pod.Result{pod.Passed, pod.Failed} {
			for _, readiness := range []pod.Result{pod.Passed, pod.Failed} {
				if startup == pod.Passed || (liveness == pod.Passed && readiness == pod.Failed) { // other probes wait for the startup probe
					all = append(all, situation{state: pod.Running, health: pod.Health{Startup: startup, Liveness: liveness, Readiness: readiness}})
				}
			}
		}
	}
	return all
}

// The invariants hold in every state of a pod. Every combination of the pod's policy, a container's
// kind, its restart policy and rules, its exit code and its probe results is tested; the states of
// the other containers are drawn from a fixed seed, several times for each.
func TestEveryState(t *testing.T) {
	draws := 4
	if testing.Short() {
		draws = 1
	}
	rng := rand.New(rand.NewPCG(1, 2))
	count := 0
	for _, s := range specs() {
		for box := range 3 {
			for _, situation := range situations(pod.FindContainer(s.pod, s.varied)) {
				for range draws {
					w := newWorld(t, s.name, s.pod)
					w.find(box, s.varied, situation, rng)
					w.status = w.compute()
					w.check(&w.status, w.plan())
					count++
				}
			}
		}
	}
	t.Logf("%d specs, %d states", len(specs()), count)
}

// find puts the pod into a state: its sandbox is ready, not ready, or newer than its containers.
func (w *world) find(box int, varied string, given situation, rng *rand.Rand) {
	w.sandbox(box == 0)
	for c := range pod.Containers(w.pod) {
		found := given
		if c.Name != varied {
			any := situations(c)
			found = any[rng.IntN(len(any))]
		}
		w.put(c.Name, found)
	}
	if box == 2 {
		w.sandbox(true)
	}
}

// put puts a container into a situation.
func (w *world) put(name string, found situation) {
	if !found.none {
		w.health[w.add(name, 0, found.state, found.code).ID] = found.health
	}
}
