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

// prune removes instances that were replaced, but for those that are kept. It returns how
// long until there is more to remove.
func (s *Steps) prune(ctx context.Context, observed *pod.Observed) (again time.Duration) {
	old := runtime.FindGarbage(*observed, runtime.GCPolicy{MaxPerContainer: s.keepDead(), CreatedBefore: s.oldEnough()})
	for _, c := range old.Containers {
		if err := s.deps.Runtime.Remove(ctx, observed.Ref, runtime.Targets{Containers: []pod.Container{c}}, runtime.DeleteLogs); err != nil {
			s.deps.Log.Warn("removing a dead container failed", "pod", observed.Ref.String(), "container", c.ID, "err", err)
		}
	}
	for _, b := range old.Sandboxes {
		if err := s.deps.Runtime.Remove(ctx, observed.Ref, runtime.Targets{Sandboxes: []pod.Sandbox{b}}, runtime.DeleteLogs); err != nil {
			s.deps.Log.Warn("removing a dead sandbox failed", "pod", observed.Ref.String(), "sandbox", b.ID, "err", err)
		}
	}
	return old.Wait
}

// oldEnough is when what may go was created at the latest.
func (s *Steps) oldEnough() time.Time { return s.deps.Clock.Now().Add(-s.cfg.KeepFor) }

// keepDead is how many dead instances each container may leave now: with too many on the
// node each has an equal share.
func (s *Steps) keepDead() int {
	if s.cfg.KeepOnNode < 0 {
		return s.cfg.KeepDead
	}
	instances, containers := countDead(s.deps.Observer.List())
	if instances <= s.cfg.KeepOnNode {
		return s.cfg.KeepDead
	}
	share := max(s.cfg.KeepOnNode/containers, 1)
	if s.cfg.KeepDead < 0 {
		return share
	}
	return min(s.cfg.KeepDead, share)
}

// countDead counts the ended instances of all pods, and the containers that they are of.
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

// Thin removes containers of pods that have ended, the oldest first, as long as the node
// keeps more dead ones than it may. Nobody else looks after these pods until they are
// deleted. Those that live keep the newest dead instance of each container.
func (s *Steps) Thin(ctx context.Context, ended func(types.UID) bool) error {
	if s.cfg.KeepOnNode < 0 {
		return nil
	}
	type victim struct {
		ref pod.Ref
		pod.Container
	}
	var may []victim
	all := s.deps.Observer.List()
	for _, o := range all {
		if !ended(o.UID) {
			continue
		}
		for _, c := range o.Containers {
			if c.State == pod.Exited && c.CreatedAt.Before(s.oldEnough()) {
				may = append(may, victim{o.Ref, c})
			}
		}
	}
	slices.SortFunc(may, func(a, b victim) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	dead, _ := countDead(all)
	surplus := min(max(dead-s.cfg.KeepOnNode, 0), len(may))
	var errs []error
	for _, v := range may[:surplus] {
		errs = append(errs, s.deps.Runtime.Remove(ctx, v.ref, runtime.Targets{Containers: []pod.Container{v.Container}}, runtime.DeleteLogs))
	}
	return errors.Join(errs...)
}
