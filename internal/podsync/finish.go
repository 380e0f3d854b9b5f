package podsync

import (
	"context"
	"fmt"

	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// Finish releases the pod's volumes and cgroup and publishes its last status. If the pod is being
// deleted, the publisher then deletes it from the API server. A static pod that has ended keeps its mirror.
func (s *PodSteps) Finish(ctx context.Context, w pod.Work) error {
	s.track(w, why.Finishing)
	uid := w.Pod.UID
	if err := s.timed(w.Pod, why.Unmount, func() error { return s.deps.Volumes.Unmount(ctx, uid) }); err != nil {
		return fmt.Errorf("unmount volumes of pod: %w", err)
	}
	if err := s.timed(w.Pod, why.RemoveCgroup, func() error { return s.deps.Cgroups.RemovePod(ctx, uid) }); err != nil {
		return fmt.Errorf("remove cgroup of pod: %w", err)
	}
	s.deps.Objects.Unregister(w.Pod)
	if w.Orphan {
		return nil
	}
	observed := s.observed(w.Pod)
	s.publish(w, observed, stopped)
	s.deps.Status.Finish(w.Pod)
	s.track(w, why.Ended)
	s.deps.Why.Settled(uid)
	if w.Failure != nil && w.Failure.Reason == evicted {
		return s.refreshAndRemove(ctx, uid) // to free the disk space of its containers
	}
	return s.keepMirror(ctx, w)
}

// keepMirror ensures the mirror of a static pod that has ended: it may have ended before the API server
// could replace the mirror of its earlier version. A pod that was rejected has no mirror.
func (s *Steps) keepMirror(ctx context.Context, w pod.Work) error {
	if w.Unwanted || w.Failure != nil {
		return nil
	}
	return s.mirror(ctx, w)
}
