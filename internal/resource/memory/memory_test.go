package memory

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/topology/sample"
)

const dual = "2 sockets with huge pages" // two nodes of 8 GiB, with 1 GiB and 0.5 GiB of pages

// guaranteed returns a container whose requests equal its limits.
func guaranteed(name, memory string) v1.Container {
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse(memory)}
	return v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: list, Limits: list}}
}

func testPod(uid string, containers ...v1.Container) *v1.Pod {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: containers}}
	p.UID = types.UID(uid)
	return p
}

func configOn(t testing.TB, machine string) Config {
	kept := v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}
	return Config{Policy: Static, Machine: sample.Named(t, machine).Read(t), Reserved: map[int]v1.ResourceList{0: kept}, Reservation: kept,
		Path: filepath.Join(t.TempDir(), "memory_manager_state")}
}

func start(t testing.TB, cfg Config, events *[]string) *Memory {
	t.Helper()
	m, err := New(cfg, Deps{WarnNode: func(reason, message string) { *events = append(*events, reason+": "+message) }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAllocateAndRelease(t *testing.T) {
	var events []string
	cfg := configOn(t, dual)
	m := start(t, cfg, &events)
	allocate := func(p *v1.Pod, i int, hint numa.Hint) error {
		return m.Allocate(context.Background(), p, &p.Spec.Containers[i], hint)
	}
	one, far, wide := testPod("one", guaranteed("a", "5Gi")), testPod("far", guaranteed("a", "5Gi")), testPod("wide", guaranteed("a", "4Gi"))
	for _, p := range []*v1.Pod{one, far} {
		if err := allocate(p, 0, numa.Hint{}); err != nil {
			t.Fatal(err)
		}
	}
	if m.NUMANodes("one", "a") != "0" || m.NUMANodes("far", "a") != "1" || m.NUMANodes("other", "a") != "" {
		t.Errorf("one on %s, far on %s", m.NUMANodes("one", "a"), m.NUMANodes("far", "a"))
	}
	if err := allocate(wide, 0, numa.Hint{}); err == nil || !strings.Contains(err.Error(), "no NUMA nodes with enough memory") {
		t.Errorf("across two nodes that are used alone: %v", err)
	}
	if hints := m.Hints(one, &one.Spec.Containers[0]); len(hints["memory"]) != 1 || hints["memory"][0] != (numa.Hint{Nodes: 1, Preferred: true}) {
		t.Errorf("hints for allocated memory: %v", hints)
	}
	if err := m.Written(t.Context()); err != nil { // as the pod's worker does before it starts a container
		t.Fatal(err)
	}
	m = start(t, cfg, &events)
	if m.NUMANodes("far", "a") != "1" || len(events) != 0 {
		t.Errorf("after a restart far is on %s, events %q", m.NUMANodes("far", "a"), events)
	}
	m.Release("one")
	m.Release("one")
	m.Release("far")
	if err := allocate(testPod("huge", guaranteed("a", "12Gi")), 0, numa.Hint{}); err != nil || m.NUMANodes("huge", "a") != "0,1" {
		t.Errorf("huge on %s: %v", m.NUMANodes("huge", "a"), err)
	}
	if err := os.WriteFile(cfg.Path, []byte("{torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m = start(t, cfg, &events); len(m.Pods()) != 0 || len(events) != 1 || !strings.Contains(events[0], ".bad") {
		t.Errorf("after a truncated file: %v, events %q", m.Pods(), events)
	}
}

func TestInitContainerMemoryIsReused(t *testing.T) {
	var events []string
	m := start(t, configOn(t, dual), &events)
	p := testPod("p", guaranteed("a", "1Gi"), guaranteed("b", "2Gi"))
	p.Spec.InitContainers = []v1.Container{guaranteed("init", "3Gi")}
	before := m.snapshot().Nodes[0].MemoryMap[v1.ResourceMemory].Free
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if err := m.Allocate(context.Background(), p, &list[i], numa.Hint{Nodes: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if used := before - m.snapshot().Nodes[0].MemoryMap[v1.ResourceMemory].Free; used != 3<<30 {
		t.Errorf("the pod uses %d, want the init container's amount", used)
	}
	if shown := m.Memory(p, &p.Spec.Containers[1]); len(shown) != 1 || shown[0].Size != 2<<30 || shown[0].Topology.Nodes[0].ID != 0 {
		t.Errorf("shown: %v", shown)
	}
	m.Release("p")
	if free := m.snapshot().Nodes[0].MemoryMap[v1.ResourceMemory].Free; free != before || m.snapshot().Nodes[0].NumberOfAssignments != 0 {
		t.Errorf("free is %d, was %d: %+v", free, before, m.snapshot().Nodes[0])
	}
}

// TestRandomPods adds and removes random pods on every sample machine.
func TestRandomPods(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, machine := range sample.All() {
		var events []string
		m := start(t, configOn(t, machine.Name), &events)
		fresh := m.snapshot()
		live := map[types.UID]bool{}
		for step := range 40 {
			if random.IntN(3) > 0 {
				p := testPod(fmt.Sprint(step), guaranteed("a", fmt.Sprint(1+random.IntN(9), "Gi")))
				s := m.snapshot()
				for _, h := range s.hintsFor(p, staticPolicy{}.requested(p, &p.Spec.Containers[0]))[string(v1.ResourceMemory)] {
					if next, err := s.allocate(p, &p.Spec.Containers[0], staticPolicy{}.requested(p, &p.Spec.Containers[0]), h); err != nil {
						t.Fatalf("%s: hint %v cannot be allocated: %v", machine.Name, h, err)
					} else if got := next.Containers[p.UID]["a"][0].NUMAAffinity; fmt.Sprint(got) != fmt.Sprint(h.Nodes.List()) {
						t.Fatalf("%s: hint %v came from %v", machine.Name, h, got)
					}
				}
				live[p.UID] = m.Allocate(context.Background(), p, &p.Spec.Containers[0], numa.Hint{}) == nil
			} else {
				for uid := range live {
					m.Release(uid)
					delete(live, uid)
					break
				}
			}
			s := m.snapshot()
			if again, lost := s.restoreOnto(fresh); len(lost) > 0 || len(again.Containers) != len(s.Containers) {
				t.Fatalf("%s: restored with differences: %v", machine.Name, lost)
			}
			for id, n := range s.Nodes {
				for kind, table := range n.MemoryMap {
					if table.Free+table.Reserved != table.Allocatable {
						t.Fatalf("%s: node %d %s: %+v", machine.Name, id, kind, table)
					}
				}
			}
		}
		for uid := range live {
			m.Release(uid)
		}
		if !sameNodes(m.snapshot(), fresh) {
			t.Errorf("%s: not all memory was released", machine.Name)
		}
	}
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"unknown policy":               func(c *Config) { c.Policy = "some" },
		"unknown NUMA node":            func(c *Config) { c.Reserved[7] = c.Reserved[0] },
		"sum differs from reservation": func(c *Config) { c.Reservation = v1.ResourceList{v1.ResourceMemory: resource.MustParse("2Gi")} },
		"no reserved memory":           func(c *Config) { c.Reserved, c.Reservation = nil, nil },
	} {
		cfg := configOn(t, dual)
		change(&cfg)
		if _, err := New(cfg, Deps{WarnNode: func(string, string) {}, Log: slog.New(slog.DiscardHandler)}); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// A file of the reference kubelet v1.37.1 is decoded and encoded again without any change.
func TestReferenceStateFile(t *testing.T) {
	raw, err := os.ReadFile("testdata/memory_manager_state")
	if err != nil {
		t.Fatal(err)
	}
	policy, s, err := decode(raw)
	if err != nil || policy != Static || len(s.Containers) != 1 || s.Nodes[0].MemoryMap[v1.ResourceMemory].Reserved != 32<<20 {
		t.Fatalf("%q, %+v, %v", policy, s, err)
	}
	if ours, err := encode(s); err != nil || string(ours) != string(raw) {
		t.Errorf("ours\n%s\nreference's\n%s\n%v", ours, raw, err)
	}
}

func FuzzDecode(f *testing.F) {
	raw, err := os.ReadFile("testdata/memory_manager_state")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"policyName":"Static","machineState":{"0":null},"checksum":0}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, s, err := decode(raw)
		if err != nil {
			return
		}
		fresh := State{Nodes: map[int]*NodeState{0: {MemoryMap: map[v1.ResourceName]*Table{v1.ResourceMemory: {}}, Cells: []int{0}}}}
		now, _ := s.restoreOnto(fresh)
		for uid := range now.Containers {
			now = now.withoutPod(uid)
		}
	})
}
