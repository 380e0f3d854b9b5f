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
func TestWithoutCgroupsPerQOS(t *testing.T) {
	root := t.TempDir()
	tree, err := New(Config{Driver: Cgroupfs, Root: "/a", Limits: Limits{CFSPeriod: time.Second}},
		Deps{Hierarchy: Hierarchy{Version: 2, Mounts: map[string]string{"": root}}, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	groups := ForPods(false, tree, nil)
	if err := groups.EnsurePod(p); err != nil {
		t.Error(err)
	}
	if parent := groups.PodParent(p); parent != "" {
		t.Errorf("the parent of containers is %q", parent)
	}
	if used, err := groups.PodMemory(p); err != nil || used != 0 {
		t.Errorf("the pod uses %d, %v", used, err)
	}
	if group := groups.Kubepods(); group != "" {
		t.Errorf("all pods are in %q", group)
	}
	if err := groups.RemovePod(t.Context(), p.UID); err != nil {
		t.Error(err)
	}
	if made, _ := filepath.Glob(root + "/*"); len(made) != 0 {
		t.Errorf("it made %q", made)
	}
	groups = ForPods(true, tree, nil)
	if parent := groups.PodParent(p); parent != "/a/kubepods/besteffort/podu" {
		t.Errorf("with cgroupsPerQOS the parent of containers is %q", parent)
	}
	if group := groups.Kubepods(); group != "/a/kubepods" {
		t.Errorf("with cgroupsPerQOS all pods are in %q", group)
	}
}
