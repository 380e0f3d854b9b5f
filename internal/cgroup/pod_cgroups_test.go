package cgroup

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// Without cgroupsPerQOS pods have no cgroups of their own.
func TestNewPodCgroupsWithoutPerQOS(t *testing.T) {
	root := t.TempDir()
	tree, err := New(Config{Driver: Cgroupfs, Root: "/a", Limits: Limits{CFSPeriod: time.Second}},
		Deps{Hierarchy: Hierarchy{Version: 2, Mounts: map[string]string{"": root}}, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	groups := NewPodCgroups(false, tree, nil)
	if err := groups.EnsurePod(p); err != nil {
		t.Error(err)
	}
	if parent := groups.PodParent(p); parent != "" {
		t.Errorf("cgroup parent is %q, want none", parent)
	}
	if used, err := groups.PodMemoryUsage(p); err != nil || used != 0 {
		t.Errorf("memory usage of the pod is %d, %v", used, err)
	}
	if group := groups.Kubepods(); group != "" {
		t.Errorf("cgroup of all pods is %q, want none", group)
	}
	if err := groups.RemovePod(t.Context(), p.UID); err != nil {
		t.Error(err)
	}
	if created, _ := filepath.Glob(root + "/*"); len(created) != 0 {
		t.Errorf("created %q", created)
	}
	groups = NewPodCgroups(true, tree, nil)
	if parent := groups.PodParent(p); parent != "/a/kubepods/besteffort/podu" {
		t.Errorf("with cgroupsPerQOS the cgroup parent is %q", parent)
	}
	if group := groups.Kubepods(); group != "/a/kubepods" {
		t.Errorf("with cgroupsPerQOS the cgroup of all pods is %q", group)
	}
}
