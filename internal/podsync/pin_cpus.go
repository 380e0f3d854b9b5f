package podsync

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// pinCPUs sets the cpusets of the pod's running containers: the shared CPUs change when a
// container gets exclusive ones or releases them. The runtime reports the cpuset with which a
// container was created, or which an earlier kubelet set.
func (s *PodSteps) pinCPUs(ctx context.Context, p *v1.Pod, observed *pod.Observed) error {
	if s.deps.Node.Pinning.CPUs == nil || s.deps.Node.Pinning.Pin == nil {
		return nil
	}
	var failures []error
	for _, c := range observed.Containers {
		want := s.deps.Node.Pinning.CPUs(p.UID, c.Name)
		if c.State != pod.Running || want == "" || s.currentCPUs(&c) == want {
			continue
		}
		if err := s.deps.Node.Pinning.Pin(ctx, c.ID, want); err != nil {
			failures = append(failures, fmt.Errorf("pin container %s to CPUs %s: %w", c.Name, want, err))
			continue
		}
		s.pinnedCPUs[c.ID] = want
	}
	return errors.Join(failures...)
}

// currentCPUs returns the cpuset of the container, "" if unknown.
func (m *memory) currentCPUs(c *pod.Container) string {
	if cpus, pinned := m.pinnedCPUs[c.ID]; pinned {
		return cpus
	}
	if c.Resources != nil {
		return c.Resources.CPUs
	}
	return ""
}
