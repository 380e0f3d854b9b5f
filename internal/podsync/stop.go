package podsync

import (
	"context"
	"fmt"
	"time"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
	"swiftlet/internal/why"
)

// Stop stops the pod's containers, then its sandboxes.
func (s *PodSteps) Stop(ctx context.Context, w pod.Work) error {
	s.track(w, why.Stopping)
	// An earlier step may have been interrupted, so read the actual state from the runtime.
	observed, err := s.deps.Observer.Refresh(ctx, w.Pod.UID)
	s.observedWith(w.Pod.UID, err)
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
		err := why.Because(why.StillRunning, "", fmt.Errorf("stop pod: container %s is still running", live[0].Name))
		s.deps.Why.End(w.Pod.UID, why.Step{Kind: why.Kill, Name: live[0].Name}, err, s.deps.Clock.Now(), time.Time{})
		return err
	}
	// Before the status shows that the pod has ended: other pods may then claim its resources.
	if err := s.timed(w.Pod, why.Release, func() error { return s.deps.Resources.Release(ctx, pod.RefOf(w.Pod)) }); err != nil {
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
