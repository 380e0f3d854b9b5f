package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"
	"k8s.io/utils/ptr"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/topology"
	"swiftlet/internal/resource/topology/sample"
)

// guaranteed returns a container whose CPU and memory requests equal its limits.
func guaranteed(name, cpu string) v1.Container {
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("1Mi")}
	return v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: list, Limits: list}}
}

func testPod(uid string, containers ...v1.Container) *v1.Pod {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: containers}}
	p.UID, p.Name = types.UID(uid), uid
	return p
}

// TestRandomPods adds and removes random pods on every sample machine with every combination of
// options, and checks the invariants after each step.
func TestRandomPods(t *testing.T) {
	options := []Options{
		{}, {FullCores: true}, {AcrossNodes: true}, {AcrossNodes: true, FullCores: true}, {BySocket: true},
		{BySocket: true, AcrossNodes: true}, {AcrossCores: true}, {StrictReservation: true}, {ByCache: true},
		{ByCache: true, FullCores: true}, {StrictReservation: true, FullCores: true},
	}
	for _, s := range sample.All() {
		m := machine(t, s.Name)
		for i, o := range options {
			if o.BySocket && m.Count(topology.BySocket) > m.Count(topology.ByNode) {
				continue
			}
			t.Run(fmt.Sprintf("%s %+v", s.Name, o), func(t *testing.T) {
				r, err := newStaticPolicy(m, o, cpuset.New(), 1, true)
				if err != nil {
					t.Fatal(err)
				}
				l := &simulation{t: t, rules: r, random: rand.New(rand.NewPCG(7, uint64(i))), state: State{Shared: r.sharedPool()}, live: map[types.UID]*v1.Pod{}}
				for step := range 40 {
					l.step(step)
				}
			})
		}
	}
}

type simulation struct {
	t      *testing.T
	rules  staticPolicy
	random *rand.Rand
	state  State
	live   map[types.UID]*v1.Pod
}

func (l *simulation) step(n int) {
	switch l.random.IntN(5) {
	case 0, 1, 2:
		l.add(fmt.Sprint("pod-", n))
	case 3:
		for uid := range l.live { // any one
			before := l.state
			l.state = l.state.withoutPod(uid)
			if !l.state.Shared.Equals(before.Shared.Union(before.ofPod(uid))) {
				l.t.Errorf("%s: released %s, shared went from %s to %s", uid, before.ofPod(uid), before.Shared, l.state.Shared)
			}
			if again := l.state.withoutPod(uid); !again.Shared.Equals(l.state.Shared) {
				l.t.Errorf("%s: a second release freed more", uid)
			}
			delete(l.live, uid)
			break
		}
	case 4: // a restart of the agent
		raw, err := encode(Static, l.state)
		if err != nil {
			l.t.Fatal(err)
		}
		_, s, err := decode(raw)
		if err != nil {
			l.t.Fatal(err)
		}
		l.checkRestored(s)
		l.state = s
	}
	l.check()
}

// checkRestored checks that a pod that is admitted again keeps its CPUs and gets no more.
func (l *simulation) checkRestored(restored State) {
	for uid, p := range l.live {
		for c := range pod.Containers(p) {
			again, err := l.rules.allocate(restored, p, c, numa.Hint{})
			if err != nil || !again.ofPod(uid).Equals(l.state.ofPod(uid)) {
				l.t.Errorf("%s: had %s, after a restart %s: %v", uid, l.state.ofPod(uid), again.ofPod(uid), err)
			}
		}
	}
	if !restored.Shared.Equals(l.state.Shared) {
		l.t.Errorf("shared %s, after a restart %s", l.state.Shared, restored.Shared)
	}
}

// randomPod returns a pod with random containers.
func (l *simulation) randomPod(uid string) *v1.Pod {
	amount := func() string { return fmt.Sprint(1 + l.random.IntN(1+len(l.rules.machine.CPUs)/3)) }
	p := testPod(uid, guaranteed("main", amount()))
	if l.random.IntN(3) == 0 {
		p.Spec.Containers = append(p.Spec.Containers, guaranteed("second", amount()))
	}
	if l.random.IntN(3) == 0 {
		p.Spec.Containers = append(p.Spec.Containers, guaranteed("part", "500m"))
	}
	if l.random.IntN(3) == 0 {
		p.Spec.InitContainers = append(p.Spec.InitContainers, guaranteed("init", amount()))
	}
	if l.random.IntN(4) == 0 {
		side := guaranteed("side", amount())
		side.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
		p.Spec.InitContainers = append(p.Spec.InitContainers, side, guaranteed("late", amount()))
	}
	return p
}

func (l *simulation) add(uid string) {
	p := l.randomPod(uid)
	next := l.state
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			c := &list[i]
			hint := l.checkHints(next, p, c)
			after, err := l.rules.allocate(next, p, c, hint)
			if err != nil {
				return // the pod is rejected, and nothing allocated
			}
			if got, want := after.Containers[p.UID][c.Name].Size(), l.rules.requestedCPUs(p, c); got != want {
				l.t.Errorf("%s %s: has %d CPUs, wants %d", uid, c.Name, got, want)
			}
			next = after
		}
	}
	l.state, l.live[p.UID] = next, p
}

// checkHints checks that each hint can be satisfied, and returns one of them.
func (l *simulation) checkHints(s State, p *v1.Pod, c *v1.Container) numa.Hint {
	n := l.rules.requestedCPUs(p, c)
	if n == 0 {
		return numa.Hint{}
	}
	if l.rules.options.FullCores && n%l.rules.machine.ThreadsPerCore() != 0 {
		return numa.Hint{} // rejected with any hint
	}
	hints := l.rules.hints(s, p, c)[resourceName]
	var chosen numa.Hint
	for i, h := range hints {
		if len(hints) > 8 && i > 0 && l.random.IntN(len(hints)) > 8 {
			continue // a sample suffices
		}
		after, err := l.rules.allocate(s, p, c, h)
		if err != nil {
			if !l.uneven() {
				l.t.Errorf("%s: %d CPUs hinted at nodes %s cannot be allocated: %v", p.UID, n, h.Nodes, err)
			}
			continue
		}
		got := after.Containers[p.UID][c.Name]
		near := l.rules.cpusNear(h.Nodes)
		if !got.Difference(near).IsEmpty() && !l.uneven() {
			l.t.Errorf("%s: %d CPUs hinted at nodes %s came from %s", p.UID, n, h.Nodes, got)
		}
		if chosen.Nodes == 0 || h.Preferred && l.random.IntN(2) == 0 {
			chosen = h
		}
	}
	return chosen
}

// uneven reports whether cores differ in size, so that whole cores do not add up to every number.
func (l *simulation) uneven() bool {
	return l.rules.options.FullCores && len(l.rules.machine.CPUs) != l.rules.machine.ThreadsPerCore()*l.rules.machine.Count(topology.ByCore)
}

func (l *simulation) check() {
	if err := l.state.check(); err != nil {
		l.t.Fatal(err)
	}
	all := l.state.Shared.Union(l.state.allocated())
	if !all.Equals(l.rules.sharedPool()) {
		l.t.Fatalf("shared %s and allocated %s are not all of %s", l.state.Shared, l.state.allocated(), l.rules.sharedPool())
	}
	if !l.state.allocated().Intersection(l.rules.reserved).IsEmpty() {
		l.t.Fatalf("reserved %s was allocated: %s", l.rules.reserved, l.state.allocated())
	}
	for uid, p := range l.live {
		longRunning := cpuset.New()
		for c, kind := range pod.Containers(p) {
			cpus := l.state.Containers[uid][c.Name]
			if kind == pod.Main || pod.IsSidecar(c) {
				if !longRunning.Intersection(cpus).IsEmpty() {
					l.t.Fatalf("%s: containers that run together share: %v", uid, l.state.Containers[uid])
				}
				longRunning = longRunning.Union(cpus)
			}
			if l.rules.options.FullCores && l.rules.machine.Expand(cpus, topology.ByCore).Size() != cpus.Size() {
				l.t.Fatalf("%s %s: %s are not whole cores", uid, c.Name, cpus)
			}
		}
	}
}
