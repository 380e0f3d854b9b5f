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

// memoryFiles reads memory.min, memory.low and memory.high of the cgroups.
func memoryFiles(t *testing.T, tree *Tree, groups map[string]cgroupName) map[string]string {
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

func TestKernelTieredMemoryProtection(t *testing.T) {
	half := 0.5
	tree := kernelTree(t, func(c *Config) { c.MemoryQOS = &MemoryQOS{Tiered: true, ThrottlingFactor: &half} })
	if tree.Version() != 2 {
		t.Skip("needs cgroup v2")
	}
	podLevel := newPod("p", container(nil, nil))
	podLevel.Spec.Resources = &v1.ResourceRequirements{Requests: amounts("memory", "4Mi"), Limits: amounts("memory", "8Mi")}
	pods := append(qosPods(), podLevel)
	if err := tree.UpdateQOS(pods); err != nil {
		t.Fatal(err)
	}
	groups := map[string]cgroupName{"top": tree.kubepods, "burstable": tree.qosCgroup(v1.PodQOSBurstable), "besteffort": tree.qosCgroup(v1.PodQOSBestEffort)}
	for _, p := range pods {
		if err := tree.EnsurePod(p); err != nil {
			t.Fatal(err)
		}
		groups[string(p.UID)] = tree.podCgroup(p)
	}
	want := map[string]string{
		"top": "62914560 29360128 max", "burstable": "0 29360128 max", "besteffort": "0 0 max",
		"g": "33554432 0 max", "b1": "0 16777216 max", "b2": "0 8388608 max", "e": "0 0 max", "p": "0 4194304 6291456",
	}
	if diff := cmp.Diff(want, memoryFiles(t, tree, groups)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// The kubelet restarts with the feature off.
	restarted := testTree(t, Config{Driver: tree.driver, Root: "/" + tree.kubepods[0], Limits: defaults}, tree.hierarchy)
	if err := restarted.EnsureNode(amounts("cpu", "2", "memory", "1Gi")); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if err := restarted.EnsurePod(p); err != nil {
			t.Fatal(err)
		}
	}
	for key, got := range memoryFiles(t, restarted, groups) {
		if got != "0 0 max" {
			t.Errorf("%s still has %s after the feature was turned off", key, got)
		}
	}
}

func TestKernelQOSReserved(t *testing.T) {
	tree := kernelTree(t, func(c *Config) { c.QOSReserved = &QOSReserved{Percent: 50, Memory: 1 << 30} })
	memory := func(class v1.PodQOSClass) string {
		return file(t, tree, tree.qosCgroup(class), "memory/memory.limit_in_bytes", "memory.max")
	}
	if err := tree.UpdateQOS(qosPods()); err != nil {
		t.Fatal(err)
	}
	if got, want := memory(v1.PodQOSBurstable), strconv.Itoa(1<<30-16<<20); got != want {
		t.Errorf("memory limit of burstable pods is %s, want %s", got, want)
	}
	if got, want := memory(v1.PodQOSBestEffort), strconv.Itoa(1<<30-28<<20); got != want {
		t.Errorf("memory limit of best effort pods is %s, want %s", got, want)
	}
	if err := tree.UpdateQOS(nil); err != nil {
		t.Fatal(err)
	}
	if got, want := memory(v1.PodQOSBestEffort), strconv.Itoa(1<<30); got != want {
		t.Errorf("memory limit of best effort pods is %s without pods, want %s", got, want)
	}
}

func TestKernelEnforceReserved(t *testing.T) {
	tree := kernelTree(t)
	n := parsePath(tree.kubepods[0]).child("system")
	group := n.path(tree.driver)
	reserved := amounts("cpu", "500m", "memory", "64Mi", "pid", "100")
	err := tree.EnforceReserved(group, reserved)
	if err == nil || !strings.Contains(err.Error(), group) || !strings.Contains(err.Error(), "memory") {
		t.Errorf("missing cgroup: got %v", err)
	}
	if err := tree.writer.create(n, Resources{}); err != nil {
		t.Fatal(err)
	}
	if err := tree.EnforceReserved(group, reserved); err != nil {
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

func TestKernelMoveProcesses(t *testing.T) {
	tree := kernelTree(t)
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := "/" + tree.kubepods[0] + "/agents" // not a slice even with the systemd driver
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err := RemoveAll(context.Background(), clock.RealClock{}, tree.hierarchy.existingDirs(group)); err != nil {
			t.Error(err)
		}
	}()
	if err := tree.MoveProcesses(group, cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		controller := strings.Split(line, ":")[1]
		if (controller == "" || slices.Contains(limitedControllers, controller)) && !strings.HasSuffix(strings.TrimSpace(line), group) {
			t.Errorf("process is in another cgroup: %s", line)
		}
	}
	pids, err := tree.RootProcesses()
	if err != nil || slices.Contains(pids, cmd.Process.Pid) {
		t.Errorf("process is listed in the root cgroup: %v %v", pids, err)
	}
}
