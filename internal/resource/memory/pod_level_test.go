package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
)

// asking is a pod that asks for memory as a whole.
func asking(uid, memory string, containers ...v1.Container) *v1.Pod {
	p := podOf(uid, containers...)
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse(memory)}
	p.Spec.Resources = &v1.ResourceRequirements{Requests: list, Limits: list}
	return p
}

func sidecar(c v1.Container) v1.Container {
	always := v1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

// division is what each container has, in GiB, and where.
func division(m *Memory, p *v1.Pod) string {
	var all []string
	for c := range pod.Containers(p) {
		for _, b := range m.now().Given[p.UID][c.Name] {
			all = append(all, fmt.Sprintf("%s=%d%v", c.Name, b.Size>>30, b.NUMAAffinity))
		}
	}
	return strings.Join(all, " ")
}

// TestPodLevel: a pod that asks as a whole is given memory of one place, which its
// containers divide; nothing, where that is not asked for.
func TestPodLevel(t *testing.T) {
	var told []string
	cfg := configOn(t, dual)
	p := asking("p", "6Gi", bounded("own", "2Gi"), v1.Container{Name: "shares"})
	p.Spec.InitContainers = []v1.Container{
		bounded("init", "5Gi"), sidecar(bounded("beside", "1Gi")), {Name: "prepares"}, sidecar(v1.Container{Name: "logs"}),
	}
	m := start(t, cfg, &told)
	if err := m.AllocatePod(context.Background(), p, numa.Hint{Nodes: 2, Preferred: true}); err != nil || len(m.Pods()) > 0 || m.PodHints(p) != nil || m.Hints(p, &p.Spec.Containers[0]) != nil {
		t.Errorf("it is given %s, hints are %v: %v", division(m, p), m.PodHints(p), err)
	}

	cfg.PodLevel = true
	m = start(t, cfg, &told)
	fresh := m.now()
	if hints := m.PodHints(p)["memory"]; !slices.Equal(hints, []numa.Hint{{Nodes: 1, Preferred: true}, {Nodes: 2, Preferred: true}, {Nodes: 3}}) {
		t.Errorf("hints are %v", hints)
	}
	for range 2 { // it keeps what it has
		if err := m.AllocatePod(context.Background(), p, numa.Hint{Nodes: 2, Preferred: true}); err != nil {
			t.Fatal(err)
		}
	}
	const want = "init=5[1] beside=1[1] prepares=5[1] logs=3[1] own=2[1] shares=3[1]"
	if got := division(m, p); got != want {
		t.Errorf("divided as %s, want %s", got, want)
	}
	if used := m.now().Nodes[1].MemoryMap[v1.ResourceMemory].Reserved; used != 6<<30 {
		t.Errorf("%d bytes are taken", used)
	}
	if shown := m.PodMemory("p"); len(shown) != 1 || shown[0].Size != 6<<30 || shown[0].Topology.Nodes[0].ID != 1 {
		t.Errorf("shown: %v", shown)
	}
	if hints := m.PodHints(p); len(hints["memory"]) != 1 || hints["memory"][0] != (numa.Hint{Nodes: 2, Preferred: true}) {
		t.Errorf("hints of what it has: %v", hints)
	}

	before := m.now()
	if m = start(t, cfg, &told); division(m, p) != want || !same(m.now(), before) || len(told) > 0 {
		t.Errorf("after a restart: %s, told %q", division(m, p), told)
	}
	m.Release("p")
	if !same(m.now(), fresh) || len(m.now().Pods) > 0 {
		t.Errorf("not all came back: %+v", m.now())
	}
}

// TestPodLevelByContainer: where places are sought by container, those that are bound have
// memory of their own and others have not.
func TestPodLevelByContainer(t *testing.T) {
	var told []string
	cfg := configOn(t, dual)
	cfg.PodLevel = true
	m := start(t, cfg, &told)
	p := asking("p", "6Gi", bounded("own", "2Gi"), v1.Container{Name: "shares"})
	for i := range p.Spec.Containers {
		if err := m.Allocate(context.Background(), p, &p.Spec.Containers[i], numa.Hint{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := division(m, p); got != "own=2[0]" {
		t.Errorf("given as %s", got)
	}
}

func TestPodLevelRefused(t *testing.T) {
	var told []string
	cfg := configOn(t, dual)
	cfg.PodLevel = true
	m := start(t, cfg, &told)
	starved := asking("starved", "4Gi", bounded("own", "1Gi"))
	starved.Spec.InitContainers = []v1.Container{sidecar(bounded("beside", "4Gi")), {Name: "prepares"}}
	for _, c := range []struct {
		pod  *v1.Pod
		want string
	}{
		{asking("full", "4Gi", bounded("own", "4Gi"), v1.Container{Name: "shares"}),
			"pod rejected, sum of exclusive container memory requests equals pod budget, leaving no memory for shared containers"},
		{starved, "pod rejected, pod has shared init containers but no memory available for them"},
	} {
		err := m.AllocatePod(context.Background(), c.pod, numa.Hint{})
		var refusal *pod.Rejection
		if !errors.As(err, &refusal) || refusal.Reason != "EmptyPodSharedPoolError" || refusal.Message != c.want {
			t.Errorf("%s: %v, want %s", c.pod.UID, err, c.want)
		}
		if hints := m.PodHints(c.pod); len(hints) != 1 || hints["memory"] == nil || len(hints["memory"]) != 0 {
			t.Errorf("%s: hints are %v", c.pod.UID, hints)
		}
	}
	if err := m.AllocatePod(context.Background(), asking("huge", "99Gi", bounded("own", "1Gi")), numa.Hint{}); err == nil {
		t.Error("more is given than there is")
	}
}
