package podsync

import (
	"context"
	"fmt"

	"swiftlet/internal/pod"
)

// Finish releases the pod's volumes and cgroup and publishes its last status. If the pod is being
// deleted, the publisher then deletes it from the API server.
func (s *PodSteps) Finish(ctx context.Context, w pod.Work) error {
	uid := w.Pod.UID
	if err := s.deps.Volumes.Unmount(ctx, uid); err != nil {
		return fmt.Errorf("unmount volumes of pod: %w", err)
	}
	if err := s.deps.Cgroups.RemovePod(ctx, uid); err != nil {
		return fmt.Errorf("remove cgroup of pod: %w", err)
	}
	s.deps.Objects.Unregister(w.Pod)
	if w.Orphan {
		return nil
	}
	observed := s.observed(w.Pod)
	s.publish(w, observed, stopped)
	s.deps.Status.Finish(w.Pod)
	if w.Failure != nil && w.Failure.Reason == evicted {
		return s.refreshAndRemove(ctx, uid) // to free the disk space of its containers
	}
	return nil
}
