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

// bounded is a container that is held to what it asks for.
func bounded(name, memory string) v1.Container {
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse(memory)}
	return v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: list, Limits: list}}
}

func podOf(uid string, containers ...v1.Container) *v1.Pod {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: containers}}
	p.UID = types.UID(uid)
	return p
}

func configOn(t testing.TB, machine string) Config {
	kept := v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}
	return Config{Policy: Static, Machine: sample.Named(t, machine).Read(t), Reserved: map[int]v1.ResourceList{0: kept}, Reservation: kept,
		Path: filepath.Join(t.TempDir(), "memory_manager_state")}
}

func start(t testing.TB, cfg Config, told *[]string) *Memory {
	t.Helper()
	m, err := New(cfg, Deps{Tell: func(reason, message string) { *told = append(*told, reason+": "+message) }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestGiveAndTake(t *testing.T) {
	var told []string
	cfg := configOn(t, dual)
	m := start(t, cfg, &told)
	give := func(p *v1.Pod, i int, where numa.Hint) error {
		return m.Allocate(context.Background(), p, &p.Spec.Containers[i], where)
	}
	one, far, wide := podOf("one", bounded("a", "5Gi")), podOf("far", bounded("a", "5Gi")), podOf("wide", bounded("a", "4Gi"))
	for _, p := range []*v1.Pod{one, far} {
		if err := give(p, 0, numa.Hint{}); err != nil {
			t.Fatal(err)
		}
	}
	if m.Of("one", "a") != "0" || m.Of("far", "a") != "1" || m.Of("other", "a") != "" {
		t.Errorf("one on %s, far on %s", m.Of("one", "a"), m.Of("far", "a"))
	}
	if err := give(wide, 0, numa.Hint{}); err == nil || !strings.Contains(err.Error(), "no NUMA nodes with enough memory") {
		t.Errorf("over two nodes that are used alone: %v", err)
	}
	if hints := m.Hints(one, &one.Spec.Containers[0]); len(hints["memory"]) != 1 || hints["memory"][0] != (numa.Hint{Nodes: 1, Preferred: true}) {
		t.Errorf("hints of what one has: %v", hints)
	}
	m = start(t, cfg, &told)
	if m.Of("far", "a") != "1" || len(told) != 0 {
		t.Errorf("after a restart far is on %s, told %q", m.Of("far", "a"), told)
	}
	m.Release("one")
	m.Release("one")
	m.Release("far")
	if err := give(podOf("huge", bounded("a", "12Gi")), 0, numa.Hint{}); err != nil || m.Of("huge", "a") != "0,1" {
		t.Errorf("huge on %s: %v", m.Of("huge", "a"), err)
	}
	if err := os.WriteFile(cfg.Path, []byte("{torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m = start(t, cfg, &told); len(m.Pods()) != 0 || len(told) != 1 || !strings.Contains(told[0], ".bad") {
		t.Errorf("after a torn file: %v, told %q", m.Pods(), told)
	}
}

func TestInitReused(t *testing.T) {
	var told []string
	m := start(t, configOn(t, dual), &told)
	p := podOf("p", bounded("a", "1Gi"), bounded("b", "2Gi"))
	p.Spec.InitContainers = []v1.Container{bounded("init", "3Gi")}
	before := m.now().Nodes[0].MemoryMap[v1.ResourceMemory].Free
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if err := m.Allocate(context.Background(), p, &list[i], numa.Hint{Nodes: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if used := before - m.now().Nodes[0].MemoryMap[v1.ResourceMemory].Free; used != 3<<30 {
		t.Errorf("the pod uses %d, want what its init container does", used)
	}
	if shown := m.Memory(p, &p.Spec.Containers[1]); len(shown) != 1 || shown[0].Size != 2<<30 || shown[0].Topology.Nodes[0].ID != 0 {
		t.Errorf("shown: %v", shown)
	}
	m.Release("p")
	if free := m.now().Nodes[0].MemoryMap[v1.ResourceMemory].Free; free != before || m.now().Nodes[0].NumberOfAssignments != 0 {
		t.Errorf("free is %d, was %d: %+v", free, before, m.now().Nodes[0])
	}
}

// TestLife lets pods come and go on every machine.
func TestLife(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, machine := range sample.All() {
		var told []string
		m := start(t, configOn(t, machine.Name), &told)
		fresh := m.now()
		live := map[types.UID]bool{}
		for step := range 40 {
			if random.IntN(3) > 0 {
				p := podOf(fmt.Sprint(step), bounded("a", fmt.Sprint(1+random.IntN(9), "Gi")))
				s := m.now()
				for _, h := range s.hintsFor(p, rules{}.wants(p, &p.Spec.Containers[0]))[string(v1.ResourceMemory)] {
					if next, err := s.allocate(p, &p.Spec.Containers[0], rules{}.wants(p, &p.Spec.Containers[0]), h); err != nil {
						t.Fatalf("%s: hint %v cannot be had: %v", machine.Name, h, err)
					} else if got := next.Given[p.UID]["a"][0].NUMAAffinity; fmt.Sprint(got) != fmt.Sprint(h.Nodes.List()) {
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
			s := m.now()
			if again, lost := s.onto(fresh); len(lost) > 0 || len(again.Given) != len(s.Given) {
				t.Fatalf("%s: restored otherwise: %v", machine.Name, lost)
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
		if !same(m.now(), fresh) {
			t.Errorf("%s: not all came back", machine.Name)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"policy":         func(c *Config) { c.Policy = "some" },
		"node":           func(c *Config) { c.Reserved[7] = c.Reserved[0] },
		"sum":            func(c *Config) { c.Reservation = v1.ResourceList{v1.ResourceMemory: resource.MustParse("2Gi")} },
		"no reservation": func(c *Config) { c.Reserved, c.Reservation = nil, nil },
	} {
		cfg := configOn(t, dual)
		spoil(&cfg)
		if _, err := New(cfg, Deps{Tell: func(string, string) {}, Log: slog.New(slog.DiscardHandler)}); err == nil {
			t.Errorf("bad %s was accepted", name)
		}
	}
}

// The file that the reference kubelet v1.37.1 wrote is read, and written again to the byte.
func TestFileOfReference(t *testing.T) {
	raw, err := os.ReadFile("testdata/memory_manager_state")
	if err != nil {
		t.Fatal(err)
	}
	policy, s, err := decode(raw)
	if err != nil || policy != Static || len(s.Given) != 1 || s.Nodes[0].MemoryMap[v1.ResourceMemory].Reserved != 32<<20 {
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
		now, _ := s.onto(fresh)
		for uid := range now.Given {
			now = now.without(uid)
		}
	})
}
