package podsync

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// evicted is the reason of an evicted pod's failure.
const evicted = "Evicted"

// RemoveEnded removes the containers and sandboxes of pods that have ended, with the containers'
// logs, to free disk space.
func (s *Steps) RemoveEnded(ctx context.Context, ended func(types.UID) bool) error {
	var errs []error
	for _, o := range s.deps.Observer.List() {
		if ended(o.UID) {
			errs = append(errs, s.removeDead(ctx, o))
		}
	}
	return errors.Join(errs...)
}

// refreshAndRemove reads the pod first: an earlier attempt may have removed what was last
// observed.
func (s *Steps) refreshAndRemove(ctx context.Context, uid types.UID) error {
	left, err := s.deps.Observer.Refresh(ctx, uid)
	if err != nil {
		return fmt.Errorf("read pod from runtime: %w", err)
	}
	return s.removeDead(ctx, left)
}

// removeDead removes the containers and sandboxes of a pod that has ended.
func (s *Steps) removeDead(ctx context.Context, o pod.Observed) error {
	if len(o.Live()) > 0 {
		return nil // its worker handles it
	}
	dead := slices.DeleteFunc(slices.Clone(o.Sandboxes), func(b pod.Sandbox) bool { return b.Ready })
	return s.deps.Runtime.Remove(ctx, o.Ref, runtime.Targets{Containers: o.Containers, Sandboxes: dead}, runtime.DeleteLogs)
}
