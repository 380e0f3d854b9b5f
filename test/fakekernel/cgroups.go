package fakekernel

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/cgroup"
)

// PodCgroups are the cgroups of pods as one run of an agent uses them.
type PodCgroups struct{ view View }

var _ cgroup.PodCgroups = PodCgroups{}

// Cgroups returns the cgroups of pods.
func (v View) Cgroups() PodCgroups { return PodCgroups{v} }

// EnsurePod creates the cgroup of a pod.
func (c PodCgroups) EnsurePod(p *v1.Pod) error {
	return c.view.change("EnsurePod", p.Name, func() error {
		c.view.kernel.cgroups[p.UID] = true
		return nil
	})
}

// PodParent is the cgroup of a pod.
func (c PodCgroups) PodParent(p *v1.Pod) string { return "/kubepods/pod" + string(p.UID) }

// RemovePod kills what runs in the cgroup, as the kernel would.
func (c PodCgroups) RemovePod(_ context.Context, uid types.UID) error {
	return c.view.change("RemovePod", string(uid), func() error {
		delete(c.view.kernel.cgroups, uid)
		return nil
	})
}

// Pods lists the pods that have a cgroup.
func (c PodCgroups) Pods() ([]types.UID, error) { return c.view.kernel.PodCgroups(), nil }

// PodMemoryUsage is always zero.
func (PodCgroups) PodMemoryUsage(*v1.Pod) (uint64, error) { return 0, nil }

// Kubepods is empty: there is no cgroup of all pods.
func (PodCgroups) Kubepods() string { return "" }

// Hierarchy makes a cgroup v1 tree below a directory, with the files that the agent reads.
func Hierarchy(dir string) (cgroup.Hierarchy, error) {
	for _, controller := range []string{"memory", "cpu"} {
		if err := os.MkdirAll(filepath.Join(dir, controller), 0o755); err != nil {
			return cgroup.Hierarchy{}, fmt.Errorf("make cgroup hierarchy: %w", err)
		}
	}
	files := map[string]string{
		"memory.usage_in_bytes": "1048576\n", "memory.limit_in_bytes": "9223372036854771712\n",
		"memory.stat": "total_inactive_file 0\ntotal_rss 4096\ntotal_pgfault 1\ntotal_pgmajfault 1\n", "memory.max_usage_in_bytes": "1048576\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, "memory", name), []byte(text), 0o644); err != nil {
			return cgroup.Hierarchy{}, fmt.Errorf("make cgroup hierarchy: %w", err)
		}
	}
	return cgroup.Hierarchy{Version: 1, Mounts: map[string]string{"memory": filepath.Join(dir, "memory"), "cpu": filepath.Join(dir, "cpu")}}, nil
}
