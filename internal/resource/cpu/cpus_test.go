package cpu

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
)

// node is a machine whose agent can be restarted.
type node struct {
	t       *testing.T
	cfg     Config
	running []Running
	events  []string
	changed int
}

func newNode(t *testing.T, name string) *node {
	return &node{t: t, cfg: Config{Policy: Static, Machine: machine(t, name), ReservedCount: 1, Path: filepath.Join(t.TempDir(), "cpu_manager_state")}}
}

func (n *node) start() *CPUs {
	n.t.Helper()
	c, err := New(n.cfg, Deps{
		Running:  func() ([]Running, error) { return n.running, nil },
		WarnNode: func(reason, message string) { n.events = append(n.events, reason+": "+message) },
		Changed:  func() { n.changed++ },
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

// admit allocates the CPUs of a pod's containers, and waits for the disk as the pod's worker does.
func admit(c *CPUs, p *v1.Pod) error {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if err := c.Allocate(context.Background(), p, &list[i], numa.Hint{}); err != nil {
				return err
			}
		}
	}
	return c.Written(context.Background())
}

func TestAllocateAndRelease(t *testing.T) {
	n := newNode(t, "1 socket, SMT")
	c := n.start()
	one, two := testPod("one", guaranteed("a", "2"), guaranteed("b", "1500m")), testPod("two", guaranteed("a", "1"))
	for _, p := range []*v1.Pod{one, two, two} {
		if err := admit(c, p); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.CPUSet("one", "a").String() + " " + c.CPUSet("two", "a").String() + " " + c.CPUSet("one", "b").String(); got != "1,9 8 0,2-7,10-15" {
		t.Errorf("CPUs of one, two and the shared pool: %s", got)
	}
	if !c.HasExclusiveCPUs(one, &one.Spec.Containers[0]) || c.HasExclusiveCPUs(one, &one.Spec.Containers[1]) || !c.PodHasExclusiveCPUs(one) {
		t.Error("the containers with exclusive CPUs are not reported as such")
	}
	if got := c.Usage(); got.Exclusive != 3 || got.Free != 12 || got.ByNode[0] != 3 {
		t.Errorf("usage: %+v", got)
	}
	if n.changed != 2 {
		t.Errorf("%d notifications, want 2: admitting a pod again changes nothing", n.changed)
	}
	if err := admit(c, testPod("big", guaranteed("a", "13"))); err == nil || !strings.Contains(err.Error(), "requested=13, available=12") {
		t.Errorf("13 of 12: %v", err)
	}
	c = n.start() // as after a crash
	if got := c.CPUSet("one", "a").String(); got != "1,9" {
		t.Errorf("after a restart one has %s", got)
	}
	c.Release("one")
	c.Release("one")
	if err := c.Written(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = n.start()
	if got := c.CPUSet("two", "b").String(); got != "0-7,9-15" || len(c.Pods()) != 1 {
		t.Errorf("after the release of one the shared pool is %s, pods %v", got, c.Pods())
	}
}

// The sync loop allocates without waiting for the disk. The pod's worker does not start a container while Written
// returns an error.
func TestStateIsWrittenBeforeUse(t *testing.T) {
	n := newNode(t, "1 socket, SMT")
	c := n.start()
	path := c.cfg.Path
	c.cfg.Path = filepath.Join(path, "no", "folder")
	p := testPod("one", guaranteed("a", "2"))
	if err := c.Allocate(t.Context(), p, &p.Spec.Containers[0], numa.Hint{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Written(t.Context()); err == nil {
			t.Error("no error although the state file could not be written")
		}
	}
	c.cfg.Path = path
	if err := c.Written(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := n.start().CPUSet("one", "a").String(); got != "1,9" {
		t.Errorf("after a restart one has %s", got)
	}
}

func TestPodsWithoutExclusiveCPUs(t *testing.T) {
	c := newNode(t, "1 socket, SMT").start()
	burst := testPod("burst", guaranteed("a", "2"))
	burst.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse("3")}
	whole := testPod("whole", guaranteed("a", "2"))
	whole.Spec.Resources = &v1.ResourceRequirements{Requests: guaranteed("", "4").Resources.Requests, Limits: guaranteed("", "4").Resources.Limits}
	for _, p := range []*v1.Pod{burst, whole, testPod("part", guaranteed("a", "2500m"))} {
		if err := admit(c, p); err != nil || len(c.Pods()) != 0 {
			t.Errorf("%s has exclusive CPUs: %v", p.UID, err)
		}
		if hints := c.Hints(p, &p.Spec.Containers[0]); hints != nil {
			t.Errorf("%s: hints %v", p.UID, hints)
		}
	}
}

func TestPodLevelResources(t *testing.T) {
	n := newNode(t, "1 socket, SMT")
	n.cfg.PodLevel = true
	c := n.start()
	p := testPod("whole", guaranteed("own", "2"), v1.Container{Name: "rest"})
	p.Spec.InitContainers = []v1.Container{{Name: "init"}}
	p.Spec.Resources = &v1.ResourceRequirements{Requests: guaranteed("", "4").Resources.Requests, Limits: guaranteed("", "4").Resources.Limits}
	if err := c.AllocatePod(context.Background(), p, numa.Hint{}); err != nil {
		t.Fatal(err)
	}
	got := []string{c.CPUSet("whole", "own").String(), c.CPUSet("whole", "rest").String(), c.CPUSet("whole", "init").String(), c.CPUSet("other", "x").String()}
	if strings.Join(got, " ") != "1,9 2,10 1-2,9-10 0,3-8,11-15" {
		t.Errorf("own, rest, init, others: %v", got)
	}
	if c.PodHasExclusiveCPUs(p) || !c.HasExclusiveCPUs(p, &p.Spec.Containers[0]) || c.HasExclusiveCPUs(p, &p.Spec.Containers[1]) {
		t.Error("exclusive CPUs are reported of another container than own")
	}
	c = n.start()
	if err := c.AllocatePod(context.Background(), p, numa.Hint{}); err != nil || len(c.PodCPUs("whole")) != 4 {
		t.Errorf("again: %v, %v", c.PodCPUs("whole"), err)
	}
	p.UID, p.Spec.Containers[0] = "full", guaranteed("own", "4")
	var rejection *pod.Rejection
	if err := c.AllocatePod(context.Background(), p, numa.Hint{}); !errors.As(err, &rejection) || rejection.Reason != "EmptyPodSharedPoolError" {
		t.Errorf("empty shared pool: %v", err)
	}
}

func TestFullCoresRejection(t *testing.T) {
	n := newNode(t, "1 socket, SMT")
	n.cfg.Options = Options{FullCores: true}
	c := n.start()
	for amount, want := range map[string]string{
		"3":  "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
		"16": "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 14, requested CPUs = 16, CPUs per core = 2",
	} {
		var rejection *pod.Rejection
		if err := admit(c, testPod("p", guaranteed("a", amount))); !errors.As(err, &rejection) || rejection.Reason != "SMTAlignmentError" || rejection.Message != want {
			t.Errorf("%s CPUs: %v", amount, err)
		}
	}
}

func TestCorruptStateFile(t *testing.T) {
	n := newNode(t, "1 socket, SMT")
	if err := admit(n.start(), testPod("one", guaranteed("a", "2"))); err != nil {
		t.Fatal(err)
	}
	valid, err := os.ReadFile(n.cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	n.running = []Running{
		{"one", "a", set(t, "1,9")},
		{"two", "a", set(t, "0,2-8,10-15")}, {"three", "a", set(t, "0,2-8,10-15")}, // shared pool
	}
	for name, content := range map[string]string{
		"truncated": string(valid[:len(valid)/2]), "empty": "", "other JSON": `{"hello":"world"}`, "not JSON": "hello",
		"wrong checksum": strings.Replace(string(valid), "1,9", "1,8", 1), "changed data": strings.Replace(string(valid), `\"1,9\"`, `\"1,8\"`, 1),
	} {
		if name == "wrong checksum" {
			content = strings.ReplaceAll(content, `"dataChecksum":`, `"dataChecksum":1`)
		}
		n.events = nil
		if err := os.WriteFile(n.cfg.Path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c := n.start()
		if got := c.CPUSet("one", "a").String() + " " + c.CPUSet("two", "a").String(); got != "1,9 0,2-8,10-15" {
			t.Errorf("%s: one and the others: %s", name, got)
		}
		if len(n.events) != 1 || !strings.Contains(n.events[0], n.cfg.Path+".bad") {
			t.Errorf("%s: events %q", name, n.events)
		}
		if kept, err := os.ReadFile(n.cfg.Path + ".bad"); err != nil || string(kept) != content {
			t.Errorf("%s: moved aside %q, %v", name, kept, err)
		}
		if again := n.start(); again.CPUSet("one", "a").String() != "1,9" || len(n.events) != 1 {
			t.Errorf("%s: the next start restored %s, events %q", name, again.CPUSet("one", "a"), n.events)
		}
	}
}

func TestTopologyChanged(t *testing.T) {
	n := newNode(t, "1 socket, SMT")
	c := n.start()
	for _, p := range []*v1.Pod{testPod("one", guaranteed("a", "2")), testPod("two", guaranteed("a", "2"))} {
		if err := admit(c, p); err != nil {
			t.Fatal(err)
		}
	}
	n.cfg.Reserved = set(t, "2") // two has 2,10
	c = n.start()
	if c.CPUSet("two", "a").String() != "2,10" || len(n.events) != 1 {
		t.Errorf("two has %s, events %q", c.CPUSet("two", "a"), n.events)
	}
	n.cfg.Machine = machine(t, "1 socket, no SMT") // 0-7 only
	n.events, n.cfg.Reserved = nil, set(t, "0")
	c = n.start()
	if got := c.CPUSet("one", "a").String(); got != "0-7" || len(c.Pods()) != 0 || len(n.events) != 2 {
		t.Errorf("one has %s, pods %v, events %q", got, c.Pods(), n.events)
	}
}

func TestPolicyChange(t *testing.T) {
	n := newNode(t, "1 socket, SMT")
	if err := admit(n.start(), testPod("one", guaranteed("a", "2"))); err != nil {
		t.Fatal(err)
	}
	n.cfg.Policy = None
	c := n.start()
	if !c.SetsAffinity() || c.CPUSet("one", "a").Size() != 16 || c.Static() {
		t.Errorf("affinity under none after static: %s", c.CPUSet("one", "a"))
	}
	if _, err := os.Stat(n.cfg.Path + ".old"); err != nil {
		t.Error(err)
	}
	if c = n.start(); c.SetsAffinity() {
		t.Error("the policy none sets the affinity")
	}
	raw, _ := encode(None, State{})
	if err := os.WriteFile(n.cfg.Path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	n.cfg.Policy = Static
	if c = n.start(); c.CPUSet("one", "a").Size() != 16 || len(c.Pods()) != 0 {
		t.Errorf("static after none: %s", c.CPUSet("one", "a"))
	}
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"unknown policy":              func(c *Config) { c.Policy = "dynamic" },
		"no reserved CPU":             func(c *Config) { c.ReservedCount = 0 },
		"too many reserved CPUs":      func(c *Config) { c.ReservedCount = 17 },
		"reserved CPU does not exist": func(c *Config) { c.Reserved = set(t, "0,99") },
		"relative path":               func(c *Config) { c.Path = "state" },
		"no topology":                 func(c *Config) { c.Options.BySocket = true; c.Machine = nil },
	} {
		cfg := newNode(t, "1 socket, SMT").cfg
		change(&cfg)
		_, err := New(cfg, Deps{Running: func() ([]Running, error) { return nil, nil }, WarnNode: func(string, string) {}, Changed: func() {}, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	raw, err := encode(Static, State{Shared: set(f, "0-3"), Containers: nil}.withContainer("u", "c", set(f, "2")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"policyName":"static","defaultCpuSet":"0-1","entries":{"u":{"c":"2"}},"checksum":0}`))
	f.Add([]byte(`{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		policy, s, err := decode(raw)
		if err != nil {
			return
		}
		if err := s.check(); err != nil {
			t.Fatalf("%q: accepted with inconsistent state: %v", raw, err)
		}
		again, err := encode(policy, s)
		if err != nil {
			t.Fatal(err)
		}
		if p, s2, err := decode(again); err != nil || p != policy || !s2.Shared.Equals(s.Shared) || len(s2.Containers) != len(s.Containers) {
			t.Errorf("%q became %q: %v", raw, again, err)
		}
	})
}
