package podsync

import (
	"context"
	"errors"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// bind has the pod's running containers run on the CPUs that are theirs by now: those that
// all share change as others are given to one container, or given back. What a container
// was made with, or moved to by an agent before, the runtime tells.
func (s *Steps) bind(ctx context.Context, p *v1.Pod, observed *pod.Observed) error {
	if s.deps.CPUs == nil || s.deps.Bind == nil {
		return nil
	}
	var failures []error
	for _, c := range observed.Containers {
		want := s.deps.CPUs(p.UID, c.Name)
		if c.State != pod.Running || want == "" || s.moved.get(p.UID, &c) == want {
			continue
		}
		if err := s.deps.Bind(ctx, c.ID, want); err != nil {
			failures = append(failures, fmt.Errorf("move container %s to CPU %s: %w", c.Name, want, err))
			continue
		}
		s.moved.set(p.UID, c.ID, want)
	}
	return errors.Join(failures...)
}

// bindings are the CPUs that containers were moved to by this agent. The runtime does not
// tell of such a change by itself, so that what was observed lags behind.
type bindings struct {
	mu   sync.Mutex
	cpus map[types.UID]map[string]string // by pod and container id
}

func (b *bindings) get(uid types.UID, c *pod.Container) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cpus, moved := b.cpus[uid][c.ID]; moved {
		return cpus
	}
	if c.Resources != nil {
		return c.Resources.CPUs
	}
	return ""
}

func (b *bindings) set(uid types.UID, id, cpus string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cpus == nil {
		b.cpus = map[types.UID]map[string]string{}
	}
	if b.cpus[uid] == nil {
		b.cpus[uid] = map[string]string{}
	}
	b.cpus[uid][id] = cpus
}

func (b *bindings) forget(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.cpus, uid)
}
