package cgroup

import (
	"log/slog"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

var discard = slog.New(slog.DiscardHandler)

func testTree(t *testing.T, c Config, h Hierarchy) *Tree {
	t.Helper()
	if c.CFSPeriod == 0 {
		c.Limits = defaults
	}
	tree, err := New(c, Deps{Hierarchy: h, Clock: clock.RealClock{}, Log: discard})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestPodParent(t *testing.T) {
	cpu := amounts("cpu", "1", "memory", "1Mi")
	pods := map[string]*v1.Pod{
		"best effort": newPod("3fd5bee3b3c875a4e9d0192549c8a281"),
		"burstable":   newPod("1e6e355d-2edf-4da1", container(nil, amounts("memory", "1Mi"))),
		"guaranteed":  newPod("21833128-5566", container(cpu, cpu)),
	}
	for _, c := range []struct {
		driver          Driver
		root, pod, want string
	}{
		{Cgroupfs, "/", "best effort", "/kubepods/besteffort/pod3fd5bee3b3c875a4e9d0192549c8a281"},
		{Cgroupfs, "/", "burstable", "/kubepods/burstable/pod1e6e355d-2edf-4da1"},
		{Cgroupfs, "/", "guaranteed", "/kubepods/pod21833128-5566"},
		{Cgroupfs, "/a/b", "guaranteed", "/a/b/kubepods/pod21833128-5566"},
		{Systemd, "/", "best effort", "kubepods-besteffort-pod3fd5bee3b3c875a4e9d0192549c8a281.slice"},
		{Systemd, "/", "burstable", "kubepods-burstable-pod1e6e355d_2edf_4da1.slice"},
		{Systemd, "", "guaranteed", "kubepods-pod21833128_5566.slice"},
	} {
		tree := testTree(t, Config{Driver: c.driver, Root: c.root}, Hierarchy{Version: 2, Mounts: map[string]string{"": "/c"}})
		if got := tree.PodParent(pods[c.pod]); got != c.want {
			t.Errorf("%s below %q, %s: %s, want %s", c.pod, c.root, c.driver, got, c.want)
		}
	}
}

func TestPodDir(t *testing.T) {
	p := newPod("1e6e-2edf", container(nil, amounts("memory", "1Mi")))
	v1tree := testTree(t, Config{Driver: Cgroupfs}, Hierarchy{Version: 1, Mounts: map[string]string{"cpu": "/c/cpu", "memory": "/c/memory"}})
	v2tree := testTree(t, Config{Driver: Systemd}, Hierarchy{Version: 2, Mounts: map[string]string{"": "/c"}})
	for _, c := range []struct{ got, want string }{
		{v1tree.PodDir(p, "cpu"), "/c/cpu/kubepods/burstable/pod1e6e-2edf"},
		{v1tree.PodDir(p, "rdma"), ""},
		{v2tree.PodDir(p, "cpu"), "/c/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1e6e_2edf.slice"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestPodUIDFromDirectory(t *testing.T) {
	for _, driver := range []Driver{Cgroupfs, Systemd} {
		tree := testTree(t, Config{Driver: driver, Root: "/x"}, Hierarchy{Version: 2, Mounts: map[string]string{"": "/c"}})
		for _, class := range tree.qosCgroups() {
			n := class.child("pod0a1b-2c3d")
			dir := n.path(driver)[len(class.path(driver))+1:]
			if uid, ok := class.podUID(driver, dir); !ok || uid != "0a1b-2c3d" {
				t.Errorf("%s: %s gives %q, %v", driver, dir, uid, ok)
			}
			for _, other := range []string{"burstable", "kubepods-burstable.slice", "pod", "cri-containerd-0a.scope"} {
				if uid, ok := class.podUID(driver, other); ok {
					t.Errorf("%s: %s is parsed as pod %q", driver, other, uid)
				}
			}
		}
	}
}

func TestParseCgroup(t *testing.T) {
	for _, c := range []struct {
		driver      Driver
		group, want string
	}{
		{Cgroupfs, "/system/kube-reserved", "/system/kube-reserved"},
		{Systemd, "/system.slice", "/system.slice"},
		{Systemd, "podruntime-kube_let.slice", "/podruntime.slice/podruntime-kube_let.slice"},
	} {
		tree := testTree(t, Config{Driver: c.driver}, Hierarchy{Version: 2, Mounts: map[string]string{"": "/c"}})
		if got := tree.parseCgroup(c.group).path(c.driver); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.driver, c.group, got, c.want)
		}
	}
}

func TestNewErrors(t *testing.T) {
	h := Hierarchy{Version: 2, Mounts: map[string]string{"": "/c"}}
	for name, c := range map[string]struct {
		config Config
		deps   Deps
		want   string
	}{
		"unknown_driver":   {Config{Driver: "", Limits: defaults}, Deps{Hierarchy: h, Clock: clock.RealClock{}, Log: discard}, `unknown driver ""`},
		"no_cfs_period":    {Config{Driver: Cgroupfs}, Deps{Hierarchy: h, Clock: clock.RealClock{}, Log: discard}, "CFS period is 0s"},
		"no_hierarchy":     {Config{Driver: Cgroupfs, Limits: defaults}, Deps{Clock: clock.RealClock{}, Log: discard}, "missing Hierarchy.Mounts"},
		"no_clock_and_log": {Config{Driver: Cgroupfs, Limits: defaults}, Deps{Hierarchy: h}, "missing Clock, Log"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(c.config, c.deps); err == nil || err.Error() != "new cgroup tree: "+c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}
