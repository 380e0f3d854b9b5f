package agent

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/config"
	"swiftlet/internal/pod"
)

// Without cgroupsPerQOS nothing of pods is in the tree, and nobody misses it.
func TestWithoutCgroupsPerQOS(t *testing.T) {
	root := t.TempDir()
	tree, err := cgroup.New(cgroup.Config{Driver: cgroup.Cgroupfs, Root: "/a", Limits: cgroup.Limits{CFSPeriod: time.Second}},
		cgroup.Deps{Hierarchy: cgroup.Hierarchy{Version: 2, Mounts: map[string]string{"": root}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	perQOS := false
	a := &Agent{cfg: &config.Config{}}
	a.cfg.Kubelet.CgroupsPerQOS, a.machine.cgroups = &perQOS, tree
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	groups := a.podCgroups()
	if err := groups.EnsurePod(p); err != nil {
		t.Error(err)
	}
	if parent := groups.PodParent(p); parent != "" {
		t.Errorf("the runtime is told to use %q", parent)
	}
	if used, _, err := (memoryUsage{cgroups: groups}).Memory(t.Context(), p, &pod.Observed{}); err != nil || used != 0 {
		t.Errorf("the pod uses %d, %v", used, err)
	}
	if group := a.podsGroup(); group != "" {
		t.Errorf("all pods are in %q", group)
	}
	if err := groups.RemovePod(t.Context(), p.UID); err != nil {
		t.Error(err)
	}
	if made, _ := filepath.Glob(root + "/*"); len(made) != 0 {
		t.Errorf("it made %q", made)
	}
	perQOS = true
	if parent := a.podCgroups().PodParent(p); parent != "/a/kubepods/besteffort/podu" {
		t.Errorf("with cgroupsPerQOS the runtime is told to use %q", parent)
	}
	if group := a.podsGroup(); group != "/a/kubepods" {
		t.Errorf("with cgroupsPerQOS all pods are in %q", group)
	}
}
