package cgroup

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func systemctl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("systemctl", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("systemctl %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// systemd writes the properties of its units again at any time, so all limits must be properties.
func TestKernelSystemdUnitsHaveLimits(t *testing.T) {
	if kernelDriver() != Systemd {
		t.Skip("needs systemd")
	}
	tree := kernelTree(t, func(c *Config) { c.MemoryQOS = &MemoryQOS{Tiered: true} })
	half := amounts("cpu", "500m", "memory", "32Mi")
	p := newPod("aaaa-bbbb", container(half, half))
	b := newPod("cccc", container(amounts("cpu", "250m", "memory", "16Mi"), amounts("cpu", "2", "memory", "64Mi")))
	if err := tree.UpdateQOS([]*v1.Pod{p, b}); err != nil {
		t.Fatal(err)
	}
	groups := map[string]cgroupName{"top": tree.kubepods, "burstable": tree.qosCgroup(v1.PodQOSBurstable), "besteffort": tree.qosCgroup(v1.PodQOSBestEffort)}
	for _, p := range []*v1.Pod{p, b} {
		if err := tree.EnsurePod(p); err != nil {
			t.Fatal(err)
		}
		groups[string(p.UID)] = tree.podCgroup(p)
	}
	read := func() map[string]string {
		got := map[string]string{}
		for key, n := range groups {
			var values []string
			for _, f := range []string{"cpu.weight", "cpu.max", "memory.min", "memory.low", "memory.max", "pids.max"} {
				values = append(values, file(t, tree, n, "", f))
			}
			got[key] = strings.Join(values, ", ")
		}
		return got
	}
	want := map[string]string{
		"top":        "79, max 100000, 50331648, 16777216, 1073741824, 1000",
		"burstable":  "10, max 100000, 0, 16777216, max, max",
		"besteffort": "1, max 100000, 0, 0, max, max",
		"aaaa-bbbb":  "20, 50000 100000, 33554432, 0, 33554432, 64",
		"cccc":       "10, 200000 100000, 0, 16777216, 67108864, 64",
	}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	systemctl(t, "daemon-reload")
	systemctl(t, "daemon-reexec")
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("after systemd reloaded its units (-want +got):\n%s", diff)
	}
	uids, err := tree.Pods()
	if diff := cmp.Diff([]types.UID{"aaaa-bbbb", "cccc"}, uids); err != nil || diff != "" {
		t.Errorf("pods: %v %s", err, diff)
	}

	unit := tree.PodParent(p)
	if state := systemctl(t, "show", "--value", "--property=ActiveState", unit); state != "active" {
		t.Errorf("%s is %s", unit, state)
	}
	if err := tree.RemovePod(t.Context(), p.UID); err != nil {
		t.Fatal(err)
	}
	if left := systemctl(t, "list-units", "--all", "--plain", "--no-legend", unit); left != "" {
		t.Errorf("systemd still has %s", left)
	}
}
