package podsync

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// pinCPUs moves the pod's running containers to the CPUs that are theirs by now: the shared
// ones change when others are given to one container, or returned. The runtime reports what
// a container was created with, or moved to by an earlier agent.
func (s *PodSteps) pinCPUs(ctx context.Context, p *v1.Pod, observed *pod.Observed) error {
	if s.deps.Pinning.CPUs == nil || s.deps.Pinning.Pin == nil {
		return nil
	}
	var failures []error
	for _, c := range observed.Containers {
		want := s.deps.Pinning.CPUs(p.UID, c.Name)
		if c.State != pod.Running || want == "" || s.currentCPUs(&c) == want {
			continue
		}
		if err := s.deps.Pinning.Pin(ctx, c.ID, want); err != nil {
			failures = append(failures, fmt.Errorf("move container %s to CPU %s: %w", c.Name, want, err))
			continue
		}
		s.pinnedCPUs[c.ID] = want
	}
	return errors.Join(failures...)
}

// currentCPUs are the CPUs that the container runs on, "" if unknown.
func (m *memory) currentCPUs(c *pod.Container) string {
	if cpus, pinned := m.pinnedCPUs[c.ID]; pinned {
		return cpus
	}
	if c.Resources != nil {
		return c.Resources.CPUs
	}
	return ""
}
