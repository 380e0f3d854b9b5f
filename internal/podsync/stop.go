package podsync

import (
	"context"
	"fmt"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// Stop ends everything of the pod that runs, containers first, then their sandbox.
func (s *PodSteps) Stop(ctx context.Context, w pod.Work) error {
	// An earlier step may have been interrupted: only the runtime knows what it left.
	observed, err := s.deps.Observer.Refresh(ctx, w.Pod.UID)
	if err != nil {
		return fmt.Errorf("read what runs of the pod: %w", err)
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
	return s.settled(ctx, w)
}

// settled makes sure that nothing runs and publishes how it all ended.
func (s *PodSteps) settled(ctx context.Context, w pod.Work) error {
	observed, err := s.deps.Observer.Refresh(ctx, w.Pod.UID)
	if err != nil {
		return fmt.Errorf("read how the pod ended: %w", err)
	}
	if live := observed.Live(); len(live) > 0 {
		return fmt.Errorf("container %s still runs", live[0].Name)
	}
	// Before it is said that the pod has ended: others may then want what it had.
	if err := s.deps.Resources.Release(ctx, pod.RefOf(w.Pod)); err != nil {
		return fmt.Errorf("release the pod's resources: %w", err)
	}
	if !w.Orphan {
		s.publish(w, observed, stopped)
	}
	return nil
}

// sandboxIPs are the addresses that a pod has of its sandbox.
func (s *Steps) sandboxIPs(o *pod.Observed) []string {
	if b := o.Sandbox(); b != nil {
		return pod.Addresses(b.IPs, s.cfg.IPv6First)
	}
	return nil
}
