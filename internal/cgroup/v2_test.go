package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/cgroups"
	v1 "k8s.io/api/core/v1"
)

// fakeV2 returns a directory that looks like a v2 tree with the given cgroups. The kernel creates
// the files of new cgroups; here they must exist before.
func fakeV2(t *testing.T, groups ...string) string {
	t.Helper()
	cgroups.TestMode = true // lets the library write outside a real cgroup mount
	t.Cleanup(func() { cgroups.TestMode = false })
	root := t.TempDir()
	for _, g := range append(groups, "/") {
		dir := filepath.Join(root, g)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, content := range map[string]string{
			"cgroup.controllers": "cpuset cpu io memory pids\n", "cgroup.subtree_control": "cpu\n", "cgroup.procs": "",
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func contents(t *testing.T, dir string, files ...string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, f := range files {
		if text, err := os.ReadFile(filepath.Join(dir, f)); err == nil {
			got[f] = strings.TrimSpace(string(text))
		}
	}
	return got
}

func TestV2Pod(t *testing.T) {
	root := fakeV2(t, "/kubepods", "/kubepods/burstable", "/kubepods/besteffort", "/kubepods/burstable/podu-1")
	limits := defaults
	limits.PodPIDs = 100
	tree := testTree(t, Config{Driver: Cgroupfs, Limits: limits}, Hierarchy{Version: 2, Mounts: map[string]string{"": root}})
	if err := tree.EnsureNode(amounts("cpu", "2", "memory", "1Gi", "pid", "500")); err != nil {
		t.Fatal(err)
	}
	p := newPod("u-1", container(amounts("cpu", "1"), amounts("cpu", "2", "memory", "64Mi")))
	if err := tree.EnsurePod(p); err != nil {
		t.Fatal(err)
	}
	if err := tree.UpdateQOS([]*v1.Pod{p}); err != nil {
		t.Fatal(err)
	}
	files := []string{"cpu.weight", "cpu.max", "memory.max", "pids.max"}
	for group, want := range map[string]map[string]string{
		"kubepods":                  {"cpu.weight": "79", "memory.max": "1073741824", "pids.max": "500"},
		"kubepods/burstable":        {"cpu.weight": "39"},
		"kubepods/besteffort":       {"cpu.weight": "1"},
		"kubepods/burstable/podu-1": {"cpu.weight": "39", "cpu.max": "200000 100000", "memory.max": "67108864", "pids.max": "100"},
	} {
		if diff := cmp.Diff(want, contents(t, filepath.Join(root, group), files...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", group, diff)
		}
	}
}

// failingWriter is a writer that fails after it has written limits.
type failingWriter struct {
	writer
	failing bool
}

func (w *failingWriter) set(n cgroupName, r Resources) error {
	err := w.writer.set(n, r)
	if w.failing {
		return errors.New("invalid argument")
	}
	return err
}

// A resize that fails and is reverted must not leave its limits in the kernel.
func TestV2PodAfterFailedUpdate(t *testing.T) {
	root := fakeV2(t, "/kubepods", "/kubepods/burstable", "/kubepods/besteffort", "/kubepods/burstable/podu-1")
	tree := testTree(t, Config{Driver: Cgroupfs}, Hierarchy{Version: 2, Mounts: map[string]string{"": root}})
	w := &failingWriter{writer: tree.writer}
	tree.writer = w
	for _, step := range []struct {
		memory  string
		failing bool
	}{{"64Mi", false}, {"128Mi", true}, {"64Mi", false}} {
		w.failing = step.failing
		err := tree.EnsurePod(newPod("u-1", container(nil, amounts("memory", step.memory))))
		if (err != nil) != step.failing {
			t.Fatalf("%s: %v", step.memory, err)
		}
	}
	got := contents(t, filepath.Join(root, "kubepods/burstable/podu-1"), "memory.max")["memory.max"]
	if got != "67108864" {
		t.Errorf("memory limit of the pod is %s, want 67108864", got)
	}
}

// An update of a QoS class that fails and is reverted must not leave its limits in the kernel.
func TestV2QOSClassAfterFailedUpdate(t *testing.T) {
	root := fakeV2(t, "/kubepods", "/kubepods/burstable", "/kubepods/besteffort")
	tree := testTree(t, Config{Driver: Cgroupfs}, Hierarchy{Version: 2, Mounts: map[string]string{"": root}})
	if err := tree.EnsureNode(amounts("cpu", "2", "memory", "1Gi")); err != nil {
		t.Fatal(err)
	}
	w := &failingWriter{writer: tree.writer}
	tree.writer = w
	weight := map[bool]string{}
	for _, step := range []struct {
		cpu     string
		failing bool
	}{{"1", false}, {"2", true}, {"1", false}} {
		w.failing = step.failing
		err := tree.UpdateQOS([]*v1.Pod{newPod("u-1", container(amounts("cpu", step.cpu), nil))})
		if (err != nil) != step.failing {
			t.Fatalf("%s: %v", step.cpu, err)
		}
		now := contents(t, filepath.Join(root, "kubepods/burstable"), "cpu.weight")["cpu.weight"]
		if was := weight[step.failing]; was != "" && was != now {
			t.Errorf("with a request of %s CPUs the weight of the class is %s, and was %s", step.cpu, now, was)
		}
		weight[step.failing] = now
	}
	if weight[true] == weight[false] {
		t.Errorf("weight of the class is %s for all requests", weight[true])
	}
}

func TestEnableControllersWritesMissingOnes(t *testing.T) {
	root := fakeV2(t)
	if err := enableControllers(root, []string{"cpuset", "cpu", "memory"}); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, root, "cgroup.subtree_control")["cgroup.subtree_control"]; got != "+cpuset +memory" {
		t.Errorf("wrote %q, want +cpuset +memory", got)
	}
}

func TestV2ListPods(t *testing.T) {
	root := fakeV2(t, "/kubepods/podg", "/kubepods/burstable/podb-1", "/kubepods/besteffort/pode", "/kubepods/other")
	tree := testTree(t, Config{Driver: Cgroupfs}, Hierarchy{Version: 2, Mounts: map[string]string{"": root}})
	got, err := tree.Pods()
	if err != nil || len(got) != 3 || got[0] != "b-1" || got[1] != "e" || got[2] != "g" {
		t.Errorf("%v, %v", got, err)
	}
}
