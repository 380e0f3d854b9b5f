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

// podLevelPod returns a pod with pod-level resources.
func podLevelPod(uid, memory string, containers ...v1.Container) *v1.Pod {
	p := testPod(uid, containers...)
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse(memory)}
	p.Spec.Resources = &v1.ResourceRequirements{Requests: list, Limits: list}
	return p
}

func sidecar(c v1.Container) v1.Container {
	always := v1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

// division formats each container's memory in GiB and its nodes.
func division(m *Memory, p *v1.Pod) string {
	var all []string
	for c := range pod.Containers(p) {
		for _, b := range m.snapshot().Containers[p.UID][c.Name] {
			all = append(all, fmt.Sprintf("%s=%d%v", c.Name, b.Size>>30, b.NUMAAffinity))
		}
	}
	return strings.Join(all, " ")
}

// A pod with pod-level resources gets memory of one set of nodes, which its containers divide;
// nothing without PodLevel.
func TestPodLevel(t *testing.T) {
	var events []string
	cfg := configOn(t, dual)
	p := podLevelPod("p", "6Gi", guaranteed("own", "2Gi"), v1.Container{Name: "shares"})
	p.Spec.InitContainers = []v1.Container{
		guaranteed("init", "5Gi"), sidecar(guaranteed("sidecar", "1Gi")), {Name: "prepares"}, sidecar(v1.Container{Name: "logs"}),
	}
	m := start(t, cfg, &events)
	if err := m.AllocatePod(context.Background(), p, numa.Hint{Nodes: 2, Preferred: true}); err != nil || len(m.Pods()) > 0 || m.PodHints(p) != nil || m.Hints(p, &p.Spec.Containers[0]) != nil {
		t.Errorf("allocated %s, hints are %v: %v", division(m, p), m.PodHints(p), err)
	}

	cfg.PodLevel = true
	m = start(t, cfg, &events)
	fresh := m.snapshot()
	if hints := m.PodHints(p)["memory"]; !slices.Equal(hints, []numa.Hint{{Nodes: 1, Preferred: true}, {Nodes: 2, Preferred: true}, {Nodes: 3}}) {
		t.Errorf("hints are %v", hints)
	}
	for range 2 { // the second call changes nothing
		if err := m.AllocatePod(context.Background(), p, numa.Hint{Nodes: 2, Preferred: true}); err != nil {
			t.Fatal(err)
		}
	}
	const want = "init=5[1] sidecar=1[1] prepares=5[1] logs=3[1] own=2[1] shares=3[1]"
	if got := division(m, p); got != want {
		t.Errorf("divided as %s, want %s", got, want)
	}
	if used := m.snapshot().Nodes[1].MemoryMap[v1.ResourceMemory].Reserved; used != 6<<30 {
		t.Errorf("%d bytes are reserved", used)
	}
	if shown := m.PodMemory("p"); len(shown) != 1 || shown[0].Size != 6<<30 || shown[0].Topology.Nodes[0].ID != 1 {
		t.Errorf("shown: %v", shown)
	}
	if hints := m.PodHints(p); len(hints["memory"]) != 1 || hints["memory"][0] != (numa.Hint{Nodes: 2, Preferred: true}) {
		t.Errorf("hints for allocated memory: %v", hints)
	}

	before := m.snapshot()
	if err := m.Written(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m = start(t, cfg, &events); division(m, p) != want || !sameNodes(m.snapshot(), before) || len(events) > 0 {
		t.Errorf("after a restart: %s, events %q", division(m, p), events)
	}
	m.Release("p")
	if !sameNodes(m.snapshot(), fresh) || len(m.snapshot().Pods) > 0 {
		t.Errorf("not all memory was released: %+v", m.snapshot())
	}
}

// With the container scope, only containers with limits get an allocation.
func TestPodLevelContainerScope(t *testing.T) {
	var events []string
	cfg := configOn(t, dual)
	cfg.PodLevel = true
	m := start(t, cfg, &events)
	p := podLevelPod("p", "6Gi", guaranteed("own", "2Gi"), v1.Container{Name: "shares"})
	for i := range p.Spec.Containers {
		if err := m.Allocate(context.Background(), p, &p.Spec.Containers[i], numa.Hint{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := division(m, p); got != "own=2[0]" {
		t.Errorf("allocated %s", got)
	}
}

func TestPodLevelRejected(t *testing.T) {
	var events []string
	cfg := configOn(t, dual)
	cfg.PodLevel = true
	m := start(t, cfg, &events)
	noSharedInit := podLevelPod("starved", "4Gi", guaranteed("own", "1Gi"))
	noSharedInit.Spec.InitContainers = []v1.Container{sidecar(guaranteed("sidecar", "4Gi")), {Name: "prepares"}}
	for _, c := range []struct {
		pod  *v1.Pod
		want string
	}{
		{podLevelPod("full", "4Gi", guaranteed("own", "4Gi"), v1.Container{Name: "shares"}),
			"pod rejected, sum of exclusive container memory requests equals pod budget, leaving no memory for shared containers"},
		{noSharedInit, "pod rejected, pod has shared init containers but no memory available for them"},
	} {
		err := m.AllocatePod(context.Background(), c.pod, numa.Hint{})
		var rejection *pod.Rejection
		if !errors.As(err, &rejection) || rejection.Reason != "EmptyPodSharedPoolError" || rejection.Message != c.want {
			t.Errorf("%s: %v, want %s", c.pod.UID, err, c.want)
		}
		if hints := m.PodHints(c.pod); len(hints) != 1 || hints["memory"] == nil || len(hints["memory"]) != 0 {
			t.Errorf("%s: hints are %v", c.pod.UID, hints)
		}
	}
	if err := m.AllocatePod(context.Background(), podLevelPod("huge", "99Gi", guaranteed("own", "1Gi")), numa.Hint{}); err == nil {
		t.Error("allocated more than the machine has")
	}
}
