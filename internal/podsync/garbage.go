package podsync

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// collectGarbage removes dead instances beyond those that are kept. It returns how long until
// there is more to remove.
func (s *Steps) collectGarbage(ctx context.Context, observed *pod.Observed) (retryAfter time.Duration) {
	garbage := runtime.FindGarbage(*observed, s.gcPolicy(s.maxDeadPerContainer()))
	for _, c := range garbage.Containers {
		if err := s.deps.Runtime.Remove(ctx, observed.Ref, runtime.Targets{Containers: []pod.Container{c}}, runtime.DeleteLogs); err != nil {
			s.deps.Log.Warn("container gc: failed to remove container", observed.Ref.Attr(), "container", c.ID, "err", err)
		}
	}
	for _, b := range garbage.Sandboxes {
		if err := s.deps.Runtime.Remove(ctx, observed.Ref, runtime.Targets{Sandboxes: []pod.Sandbox{b}}, runtime.DeleteLogs); err != nil {
			s.deps.Log.Warn("container gc: failed to remove sandbox", observed.Ref.Attr(), "sandbox", b.ID, "err", err)
		}
	}
	return garbage.Wait
}

func (s *Steps) gcPolicy(maxPerContainer int) runtime.GCPolicy {
	now := s.deps.Clock.Now()
	return runtime.GCPolicy{MaxPerContainer: maxPerContainer, CreatedBefore: now.Add(-s.cfg.MinDeadAge), Now: now}
}

// maxDeadPerContainer returns how many dead instances of each container are kept now: with too
// many on the node each container has an equal share.
func (s *Steps) maxDeadPerContainer() int {
	if s.cfg.MaxDead < 0 {
		return s.cfg.MaxDeadPerContainer
	}
	instances, containers := countDead(s.deps.Observer.List())
	if instances <= s.cfg.MaxDead {
		return s.cfg.MaxDeadPerContainer
	}
	share := max(s.cfg.MaxDead/containers, 1)
	if s.cfg.MaxDeadPerContainer < 0 {
		return share
	}
	return min(s.cfg.MaxDeadPerContainer, share)
}

// countDead counts the exited instances of all pods, and the containers that have any.
func countDead(all []pod.Observed) (instances, containers int) {
	for _, o := range all {
		names := map[string]bool{}
		for _, c := range o.Containers {
			if c.State == pod.Exited {
				instances++
				names[c.Name] = true
			}
		}
		containers += len(names)
	}
	return instances, containers
}

// RemoveSurplus removes exited containers of pods that have ended, oldest first, while the node has more
// dead containers than MaxDead. No worker collects the garbage of these pods until they are
// deleted. Running pods keep the newest instance of each container.
func (s *Steps) RemoveSurplus(ctx context.Context, ended func(types.UID) bool) error {
	if s.cfg.MaxDead < 0 {
		return nil
	}
	type candidate struct {
		ref pod.Ref
		pod.Container
	}
	var candidates []candidate
	all, policy := s.deps.Observer.List(), s.gcPolicy(0)
	for _, o := range all {
		if !ended(o.UID) {
			continue
		}
		for _, c := range o.Containers {
			if c.State == pod.Exited && !policy.TooYoung(&c) {
				candidates = append(candidates, candidate{o.Ref, c})
			}
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	dead, _ := countDead(all)
	surplus := min(max(dead-s.cfg.MaxDead, 0), len(candidates))
	var errs []error
	for _, v := range candidates[:surplus] {
		errs = append(errs, s.deps.Runtime.Remove(ctx, v.ref, runtime.Targets{Containers: []pod.Container{v.Container}}, runtime.DeleteLogs))
	}
	return errors.Join(errs...)
}
