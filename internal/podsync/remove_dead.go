package podsync

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
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
	err := together(o.Containers, func(c pod.Container) error { return s.deps.Runtime.RemoveContainer(ctx, o.Ref, &c) })
	if err != nil {
		return fmt.Errorf("remove dead containers: %w", err)
	}
	err = together(o.Sandboxes, func(b pod.Sandbox) error {
		if b.Ready {
			return nil
		}
		return s.deps.Runtime.RemoveSandbox(ctx, b.ID)
	})
	if err != nil {
		return fmt.Errorf("remove dead sandboxes: %w", err)
	}
	return nil
}
