package podsync

import (
	"context"
	"fmt"

	"swiftlet/internal/pod"
)

// Finish gives back what the pod held, then publishes its last status. Where the pod's
// deletion was asked for, the publisher removes it from the API server at once.
func (s *PodSteps) Finish(ctx context.Context, w pod.Work) error {
	uid := w.Pod.UID
	if err := s.deps.Volumes.Unmount(ctx, uid); err != nil {
		return fmt.Errorf("unmount the pod's volumes: %w", err)
	}
	if err := s.deps.Cgroups.RemovePod(ctx, uid); err != nil {
		return fmt.Errorf("remove the pod's cgroup: %w", err)
	}
	s.deps.Objects.Unregister(w.Pod)
	if w.Orphan {
		return nil
	}
	observed := s.observed(w.Pod)
	s.publish(w, observed, stopped)
	s.deps.Status.Finish(w.Pod)
	if w.Failure != nil && w.Failure.Reason == evicted {
		return s.discardNow(ctx, uid) // what it has written is what the node needs back
	}
	return nil
}
