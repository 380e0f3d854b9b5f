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

// evicted is the reason of a pod that had to go because the node is short of something.
const evicted = "Evicted"

// RemoveDead removes the containers and sandboxes of pods that have ended for good, with
// the containers' logs: the node needs the space more than anybody needs to read them.
func (s *Steps) RemoveDead(ctx context.Context, ended func(types.UID) bool) error {
	var errs []error
	for _, o := range s.deps.Observer.List() {
		if ended(o.UID) {
			errs = append(errs, s.discard(ctx, o))
		}
	}
	return errors.Join(errs...)
}

// discardNow looks before it removes: the last that was seen may be what an earlier try has
// removed already.
func (s *Steps) discardNow(ctx context.Context, uid types.UID) error {
	left, err := s.deps.Observer.Refresh(ctx, uid)
	if err != nil {
		return fmt.Errorf("read what is left of the pod: %w", err)
	}
	return s.discard(ctx, left)
}

// discard removes what the runtime holds of a pod that has ended.
func (s *Steps) discard(ctx context.Context, o pod.Observed) error {
	if len(o.Live()) > 0 {
		return nil // it is being looked at again
	}
	dead := slices.DeleteFunc(slices.Clone(o.Sandboxes), func(b pod.Sandbox) bool { return b.Ready })
	return s.deps.Runtime.Remove(ctx, o.Ref, runtime.Targets{Containers: o.Containers, Sandboxes: dead}, runtime.DeleteLogs)
}
