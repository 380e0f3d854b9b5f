package cgroup

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// qosPods request together 32Mi of memory guaranteed, and 24Mi and 300m burstable.
func qosPods() []*v1.Pod {
	half := amounts("cpu", "500m", "memory", "32Mi")
	return []*v1.Pod{
		newPod("g", container(half, half)),
		newPod("b1", container(amounts("cpu", "200m", "memory", "16Mi"), nil)),
		newPod("b2", container(amounts("cpu", "100m", "memory", "8Mi"), amounts("memory", "64Mi"))),
		newPod("e", container(nil, nil)),
	}
}

// protections reads memory.min, memory.low and memory.high of the groups.
func protections(t *testing.T, tree *Tree, groups map[string]name) map[string]string {
	t.Helper()
	got := map[string]string{}
	for key, n := range groups {
		var values []string
		for _, f := range []string{"memory.min", "memory.low", "memory.high"} {
			values = append(values, file(t, tree, n, "", f))
		}
		got[key] = strings.Join(values, " ")
	}
	return got
}

func TestKernelTieredMemory(t *testing.T) {
	half := 0.5
	tree := kernelTree(t, func(c *Config) { c.MemoryQOS = &MemoryQOS{Tiered: true, ThrottlingFactor: &half} })
	if tree.Version() != 2 {
		t.Skip("needs cgroup v2")
	}
	whole := newPod("p", container(nil, nil))
	whole.Spec.Resources = &v1.ResourceRequirements{Requests: amounts("memory", "4Mi"), Limits: amounts("memory", "8Mi")}
	pods := append(qosPods(), whole)
	if err := tree.UpdateQOS(pods); err != nil {
		t.Fatal(err)
	}
	groups := map[string]name{"top": tree.top, "burstable": tree.class(v1.PodQOSBurstable), "besteffort": tree.class(v1.PodQOSBestEffort)}
	for _, p := range pods {
		if err := tree.EnsurePod(p); err != nil {
			t.Fatal(err)
		}
		groups[string(p.UID)] = tree.podName(p)
	}
	want := map[string]string{
		"top": "62914560 29360128 max", "burstable": "0 29360128 max", "besteffort": "0 0 max",
		"g": "33554432 0 max", "b1": "0 16777216 max", "b2": "0 8388608 max", "e": "0 0 max", "p": "0 4194304 6291456",
	}
	if diff := cmp.Diff(want, protections(t, tree, groups)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// The next agent has the feature off.
	next := testTree(t, Config{Driver: tree.driver, Root: "/" + tree.top[0], Limits: defaults}, tree.hierarchy)
	if err := next.EnsureNode(amounts("cpu", "2", "memory", "1Gi")); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if err := next.EnsurePod(p); err != nil {
			t.Fatal(err)
		}
	}
	for key, got := range protections(t, next, groups) {
		if got != "0 0 max" {
			t.Errorf("%s keeps %s", key, got)
		}
	}
}

func TestKernelQOSReserve(t *testing.T) {
	tree := kernelTree(t, func(c *Config) { c.QOSReserve = &QOSReserve{Percent: 50, Memory: 1 << 30} })
	memory := func(class v1.PodQOSClass) string {
		return file(t, tree, tree.class(class), "memory/memory.limit_in_bytes", "memory.max")
	}
	if err := tree.UpdateQOS(qosPods()); err != nil {
		t.Fatal(err)
	}
	if got, want := memory(v1.PodQOSBurstable), strconv.Itoa(1<<30-16<<20); got != want {
		t.Errorf("burstable pods may have %s, want %s", got, want)
	}
	if got, want := memory(v1.PodQOSBestEffort), strconv.Itoa(1<<30-28<<20); got != want {
		t.Errorf("best effort pods may have %s, want %s", got, want)
	}
	if err := tree.UpdateQOS(nil); err != nil {
		t.Fatal(err)
	}
	if got, want := memory(v1.PodQOSBestEffort), strconv.Itoa(1<<30); got != want {
		t.Errorf("with no pods best effort may have %s, want %s", got, want)
	}
}

func TestKernelReserved(t *testing.T) {
	tree := kernelTree(t)
	n := parseRoot(tree.top[0]).child("system")
	group := n.path(tree.driver)
	kept := amounts("cpu", "500m", "memory", "64Mi", "pid", "100")
	err := tree.BoundReserved(group, kept)
	if err == nil || !strings.Contains(err.Error(), group) || !strings.Contains(err.Error(), "memory") {
		t.Errorf("a group that is missing: got %v", err)
	}
	if err := tree.writer.create(n, Resources{}); err != nil {
		t.Fatal(err)
	}
	if err := tree.BoundReserved(group, kept); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ v1, v2, onV1, onV2 string }{
		{"cpu/cpu.shares", "cpu.weight", "512", "20"},
		{"memory/memory.limit_in_bytes", "memory.max", "67108864", "67108864"},
		{"pids/pids.max", "pids.max", "100", "100"},
	} {
		want := c.onV1
		if tree.Version() == 2 {
			want = c.onV2
		}
		if got := file(t, tree, n, c.v1, c.v2); got != want {
			t.Errorf("%s is %s, want %s", c.v2, got, want)
		}
	}
}

func TestKernelEnter(t *testing.T) {
	tree := kernelTree(t)
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := "/" + tree.top[0] + "/agents" // no slice, whatever the driver
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err := RemoveAll(context.Background(), clock.RealClock{}, tree.hierarchy.present(group)); err != nil {
			t.Error(err)
		}
	}()
	if err := tree.Enter(group, cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		controller := strings.Split(line, ":")[1]
		if (controller == "" || slices.Contains(used, controller)) && !strings.HasSuffix(strings.TrimSpace(line), group) {
			t.Errorf("it is elsewhere: %s", line)
		}
	}
	stray, err := tree.Stray()
	if err != nil || slices.Contains(stray, cmd.Process.Pid) {
		t.Errorf("it is counted as stray: %v %v", stray, err)
	}
}
