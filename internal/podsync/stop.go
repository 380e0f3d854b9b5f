package podsync

import (
	"context"
	"fmt"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// Stop stops the pod's containers, then its sandboxes.
func (s *PodSteps) Stop(ctx context.Context, w pod.Work) error {
	// An earlier step may have been interrupted, so read the actual state from the runtime.
	observed, err := s.deps.Observer.Refresh(ctx, w.Pod.UID)
	if err != nil {
		return fmt.Errorf("read pod from runtime: %w", err)
	}
	p := w.Pod
	if w.Orphan {
		p = runtime.Restore(observed)
	} else {
		s.publish(w, observed, stopping)
	}
	how := runtime.StopOptions{PodEnds: true, Grace: w.Grace, PodIPs: s.sandboxIPs(&observed)}
	if err := s.deps.Runtime.Stop(ctx, p, runtime.Targets{Containers: observed.Live(), Sandboxes: observed.Sandboxes}, how); err != nil {
		return err
	}
	return s.confirmStopped(ctx, w)
}

// confirmStopped returns an error if a container still runs. Otherwise it releases the pod's
// resources and publishes the status of its containers.
func (s *PodSteps) confirmStopped(ctx context.Context, w pod.Work) error {
	observed, err := s.deps.Observer.Refresh(ctx, w.Pod.UID)
	if err != nil {
		return fmt.Errorf("read stopped pod from runtime: %w", err)
	}
	if live := observed.Live(); len(live) > 0 {
		return fmt.Errorf("stop pod: container %s is still running", live[0].Name)
	}
	// Before the status shows that the pod has ended: other pods may then claim its resources.
	if err := s.deps.Resources.Release(ctx, pod.RefOf(w.Pod)); err != nil {
		return fmt.Errorf("release resources of pod: %w", err)
	}
	if !w.Orphan {
		s.publish(w, observed, stopped)
	}
	return nil
}

// sandboxIPs returns the IPs of the pod's sandbox.
func (s *Steps) sandboxIPs(o *pod.Observed) []string {
	if b := o.Sandbox(); b != nil {
		return pod.Addresses(b.IPs, s.cfg.IPv6First)
	}
	return nil
}
