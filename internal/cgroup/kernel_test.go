package cgroup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/why"
)

// kernelDriver returns the driver of these tests. The systemd driver must be requested with the
// environment variable, because it changes the running systemd of the machine.
func kernelDriver() Driver {
	if os.Getenv("SWIFTLET_TEST_CGROUP_DRIVER") == string(Systemd) {
		return Systemd
	}
	return Cgroupfs
}

// kernelTree returns a tree in the running kernel with a root of its own, removed after the test.
func kernelTree(t *testing.T, changes ...func(*Config)) *Tree {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	h, err := Detect()
	if err != nil {
		t.Skipf("no cgroups: %v", err)
	}
	root := fmt.Sprintf("/swiftlet-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	limits := defaults
	limits.PodPIDs = 64
	config := Config{Driver: kernelDriver(), Root: root, Limits: limits}
	for _, change := range changes {
		change(&config)
	}
	tree := testTree(t, config, h)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		dirs := tree.existingDirs(parsePath(root))
		if err := killProcesses(ctx, dirs); err != nil {
			t.Error(err)
		}
		for _, dir := range dirs {
			if err := removeTreeRetrying(ctx, clock.RealClock{}, dir); err != nil {
				t.Error(err)
			}
		}
		if err := tree.writer.stopUnit(parsePath(root)); err != nil {
			t.Error(err)
		}
	})
	if err := tree.EnsureNode(amounts("cpu", "2", "memory", "1Gi", "pid", "1000")); err != nil {
		t.Fatal(err)
	}
	return tree
}

// runc must use the same directories for the same cgroup.
func TestKernelPathsMatchRunc(t *testing.T) {
	h, err := Detect()
	if err != nil {
		t.Skipf("no cgroups: %v", err)
	}
	const group = "/kubepods/burstable/podx"
	m, err := manager.New(&cgroups.Cgroup{Path: group, Resources: &cgroups.Resources{SkipDevices: true}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.GetPaths(), h.dirs(group)); diff != "" {
		t.Errorf("(-runc +swiftlet):\n%s", diff)
	}
}

// file reads a kernel file of a cgroup, named "controller/file" on v1 and "file" on v2.
func file(t *testing.T, tree *Tree, n cgroupName, v1file, v2file string) string {
	t.Helper()
	controller, base, _ := strings.Cut(v1file, "/")
	dir := tree.hierarchy.Mounts[controller]
	if tree.Version() == 2 {
		dir, base = tree.hierarchy.Mounts[""], v2file
	}
	text, err := os.ReadFile(filepath.Join(dir, n.path(tree.driver), base))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestKernelNode(t *testing.T) {
	tree := kernelTree(t)
	pick := func(onV1, onV2 string) string {
		if tree.Version() == 2 {
			return onV2
		}
		return onV1
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s is %s, want %s", what, got, want)
		}
	}
	classes := tree.qosCgroups()
	check("memory", file(t, tree, classes[0], "memory/memory.limit_in_bytes", "memory.max"), "1073741824")
	check("pids", file(t, tree, classes[0], "pids/pids.max", "pids.max"), "1000")
	check("shares", file(t, tree, classes[0], "cpu/cpu.shares", "cpu.weight"), pick("2048", "79"))
	check("best effort shares", file(t, tree, classes[2], "cpu/cpu.shares", "cpu.weight"), pick("2", "1"))

	one := newPod("1", container(amounts("cpu", "300m"), nil))
	two := newPod("2", container(amounts("cpu", "200m"), nil))
	if err := tree.UpdateQOS([]*v1.Pod{one, two, newPod("3")}); err != nil {
		t.Fatal(err)
	}
	check("burstable shares", file(t, tree, classes[1], "cpu/cpu.shares", "cpu.weight"), pick("512", "20"))
	if err := tree.UpdateQOS(nil); err != nil {
		t.Fatal(err)
	}
	check("burstable shares with no pods", file(t, tree, classes[1], "cpu/cpu.shares", "cpu.weight"), pick("2", "1"))
}

func TestKernelPod(t *testing.T) {
	tree := kernelTree(t)
	half := amounts("cpu", "500m", "memory", "32Mi")
	p := newPod("aaaa-bbbb", container(half, half))
	read := func() map[string]string {
		n := tree.podCgroup(p)
		got := map[string]string{
			"memory": file(t, tree, n, "memory/memory.limit_in_bytes", "memory.max"),
			"pids":   file(t, tree, n, "pids/pids.max", "pids.max"),
		}
		if tree.Version() == 2 {
			got["quota"], _, _ = strings.Cut(file(t, tree, n, "", "cpu.max"), " ")
		} else {
			got["quota"] = file(t, tree, n, "cpu/cpu.cfs_quota_us", "")
		}
		return got
	}
	if err := tree.EnsurePod(p); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"memory": "33554432", "pids": "64", "quota": "50000"}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}

	more := amounts("cpu", "1", "memory", "64Mi")
	p.Spec.Containers[0] = container(more, more)
	if err := tree.EnsurePod(p); err != nil {
		t.Fatal(err)
	}
	want = map[string]string{"memory": "67108864", "pids": "64", "quota": "100000"}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("updated (-want +got):\n%s", diff)
	}

	uids, err := tree.Pods()
	if diff := cmp.Diff([]types.UID{"aaaa-bbbb"}, uids); err != nil || diff != "" {
		t.Errorf("pods: %v %s", err, diff)
	}
	for range 2 {
		if err := tree.RemovePod(t.Context(), p.UID); err != nil {
			t.Fatal(err)
		}
	}
	if left := tree.existingDirs(tree.podCgroup(p)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// After a restart the kubelet does not know which limits it wrote before.
func TestKernelPodAfterRestart(t *testing.T) {
	tree := kernelTree(t)
	p := newPod("p", container(amounts("cpu", "1"), amounts("cpu", "1", "memory", "32Mi")))
	if err := tree.EnsurePod(p); err != nil {
		t.Fatal(err)
	}
	tree.applied = map[types.UID]Resources{}
	p.Spec.Containers[0] = container(amounts("cpu", "1"), nil)
	if err := tree.EnsurePod(p); err != nil {
		t.Fatal(err)
	}
	quota := strings.Fields(file(t, tree, tree.podCgroup(p), "cpu/cpu.cfs_quota_us", "cpu.max"))[0]
	if quota != "-1" && quota != "max" {
		t.Errorf("quota is still %s", quota)
	}
}

// A kubelet that was killed while it created or removed a cgroup left it for some controllers only.
func TestKernelPodWithMissingControllers(t *testing.T) {
	tree := kernelTree(t)
	p := newPod("p", container(amounts("cpu", "1"), amounts("cpu", "1", "memory", "32Mi")))
	if err := tree.EnsurePod(p); err != nil {
		t.Fatal(err)
	}
	for _, dir := range tree.existingDirs(tree.podCgroup(p)) {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		tree.applied = map[types.UID]Resources{}
		if err := tree.EnsurePod(p); err != nil {
			t.Fatalf("%s was missing: %v", dir, err)
		}
		got := strings.Fields(file(t, tree, tree.podCgroup(p), "cpu/cpu.cfs_quota_us", "cpu.max"))[0] + " " +
			file(t, tree, tree.podCgroup(p), "memory/memory.limit_in_bytes", "memory.max")
		if got != "100000 33554432" {
			t.Errorf("%s was missing: limits are %s", dir, got)
		}
	}
}

func TestKernelRecreatesRemovedParents(t *testing.T) {
	tree := kernelTree(t)
	for _, dir := range tree.existingDirs(tree.kubepods) {
		if err := removeTree(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := tree.EnsurePod(newPod("p")); err != nil {
		t.Fatal(err)
	}
	if got := file(t, tree, tree.kubepods, "memory/memory.limit_in_bytes", "memory.max"); got != "1073741824" {
		t.Errorf("cgroup of all pods was recreated with memory limit %s", got)
	}
}

// Processes of a container that the runtime no longer knows run in a cgroup below the pod's.
func TestKernelRemovePodKillsProcesses(t *testing.T) {
	tree := kernelTree(t)
	p := newPod("p")
	if err := tree.EnsurePod(p); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "trap '' TERM; sleep 1000 & sleep 1000 & wait")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() { cmd.Wait(); close(reaped) }()
	for _, dir := range tree.existingDirs(tree.podCgroup(p)) {
		inner := filepath.Join(dir, "container", "nested")
		if err := os.MkdirAll(inner, 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(dir, "cpuset") {
			inner = dir // an inner cpuset would need its CPUs set up first
		}
		if err := os.WriteFile(filepath.Join(inner, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0); err != nil {
			t.Fatal(err)
		}
	}
	all, err := tree.PodProcesses(p.UID)
	if err != nil || !slices.ContainsFunc(all, func(p why.Process) bool { return p.PID == cmd.Process.Pid && p.Name == "sh" && p.State != "" }) {
		t.Errorf("processes %v, %v, want %d sh among them", all, err, cmd.Process.Pid)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	start := time.Now()
	if err := tree.RemovePod(ctx, p.UID); err != nil {
		t.Fatal(err)
	}
	if all, err := tree.PodProcesses(p.UID); err != nil || len(all) > 0 {
		t.Errorf("processes after the removal: %v, %v", all, err)
	}
	t.Logf("removed in %v", time.Since(start))
	<-reaped
	if left := tree.existingDirs(tree.podCgroup(p)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func BenchmarkKernelPod(b *testing.B) {
	h, err := Detect()
	if os.Geteuid() != 0 || err != nil {
		b.Skip("needs root and cgroups")
	}
	root := fmt.Sprintf("/swiftlet-bench-%d", os.Getpid())
	tree, _ := New(Config{Driver: Cgroupfs, Root: root, Limits: defaults}, Deps{Hierarchy: h, Clock: clock.RealClock{}, Log: discard})
	if err := tree.EnsureNode(amounts("cpu", "2")); err != nil {
		b.Fatal(err)
	}
	half := amounts("cpu", "500m", "memory", "32Mi")
	p := newPod("aaaa", container(half, half))
	var removing time.Duration
	for b.Loop() {
		if err := tree.EnsurePod(p); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if err := tree.RemovePod(context.Background(), p.UID); err != nil {
			b.Fatal(err)
		}
		removing += time.Since(start)
	}
	b.ReportMetric(float64(removing.Microseconds())/float64(b.N), "µs-removing/op")
	for _, dir := range tree.existingDirs(parsePath(root)) {
		if err := removeTree(dir); err != nil {
			b.Error(err)
		}
	}
}
