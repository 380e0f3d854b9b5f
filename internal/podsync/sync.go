package podsync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/contain"
	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
	"swiftlet/internal/why"
)

// Sync reconciles the pod with its spec: it plans, acts and observes again until the plan is
// empty. A later event of the runtime wakes the pod's worker.
func (s *PodSteps) Sync(ctx context.Context, w pod.Work) (pod.Outcome, error) {
	s.track(w, why.Starting)
	if w.ObjectsChanged {
		s.objectsChanged()
	}
	outcome, err := s.sync(ctx, w)
	outcome.AwaitsObjects = s.awaitsObjects()
	return outcome, err
}

func (s *PodSteps) sync(ctx context.Context, w pod.Work) (pod.Outcome, error) {
	p := w.Pod
	observed, err := s.current(ctx, p)
	if err != nil {
		return pod.Outcome{}, err
	}
	s.recordInitial(p)
	status := s.publish(w, observed, running)
	if pod.IsTerminal(status.Phase) {
		return pod.Outcome{Ended: true}, nil
	}
	overdue, left := s.deadline(p, &status)
	if overdue != nil {
		return pod.Outcome{Failure: overdue}, nil
	}
	s.deps.Status.Reconcile(p)
	s.deps.Objects.Register(p)
	s.deps.Volumes.Update(p)

	mirrored := make(chan error, 1)
	go func() { mirrored <- contain.Call(func() error { return s.mirror(ctx, w) }) }()
	pinned := s.pinCPUs(ctx, p, &observed)
	ended, retryAfter, err := s.converge(ctx, w, observed, status)
	err = errors.Join(err, pinned, <-mirrored)
	if ended { // errors of starting it no longer matter
		return pod.Outcome{Ended: true}, nil
	}
	if err == nil && retryAfter == 0 {
		s.deps.Why.Settled(p.UID)
	}
	if rejection := s.reject(p, err); rejection != nil {
		return pod.Outcome{Failure: rejection}, nil
	}
	return pod.Outcome{RetryAfter: soonest(left, retryAfter)}, err
}

// converge repeats plan and act until the plan is empty or ends the pod. A container that failed to
// start, or must wait, is left out of the following rounds. What the runtime reports as done, and is planned
// again, is an error: it is retried after a back-off.
func (s *PodSteps) converge(ctx context.Context, w pod.Work, observed pod.Observed, status v1.PodStatus) (ended bool, retryAfter time.Duration, err error) {
	notStarted, killed := map[string]bool{}, map[string]bool{}
	var failures []error
	resizeFailed, hasNewSandbox := false, false
	for ctx.Err() == nil {
		actions := plan.Compute(plan.Input{Pod: w.Pod, Observed: &observed, Health: s.deps.Probes.Health, Hash: runtime.ContainerHash, Status: &status, Actual: s.actual(w.Pod.UID)})
		if actions.End {
			return true, 0, nil
		}
		if len(actions.Reset) > 0 { // only the status has the state of containers that are removed
			status = s.publish(w, observed, running)
		}
		if resizeFailed {
			actions.Resize = false // the rest of the plan does not wait for the resize
		}
		err := s.stopPlanned(ctx, w.Pod, &observed, actions, killed)
		if err == nil && actions.Resize {
			if err := s.resize(ctx, w, &observed, actions.Update); err != nil {
				resizeFailed, failures = true, append(failures, err)
			}
		}
		if err == nil {
			var failed map[string]bool
			// After stopPlanned: its grace periods count towards the back-off of what starts.
			retryAfter = soonest(retryAfter, s.delayStarts(w.Pod, &observed, &actions, notStarted, killed))
			if actions.Idle() {
				s.deps.Volumes.MountInBackground(w.Pod)
				if err := s.checkpoint(ctx, w.Pod); err != nil {
					failures = append(failures, err)
				}
				break
			}
			if actions.NewSandbox && hasNewSandbox {
				err = errors.New("create sandbox of pod: the new sandbox cannot be used")
			} else {
				failed, err = s.start(ctx, w.Pod, &observed, actions)
			}
			hasNewSandbox = hasNewSandbox || actions.NewSandbox
			maps.Copy(notStarted, failed)
		}
		if err != nil && !isWait(err) {
			failures = append(failures, err)
		}
		fresh, refreshErr := s.refresh(ctx, w.Pod.UID)
		if refreshErr != nil {
			failures = append(failures, refreshErr)
			break
		}
		observed = fresh
		if err != nil {
			break // it is an error of the whole pod, or the whole pod waits
		}
		if len(actions.Reset) > 0 { // the next plan reads it from the status
			status = s.publish(w, observed, running)
		}
	}
	status = s.publish(w, observed, running)
	retryAfter = soonest(retryAfter, s.collectGarbage(ctx, &observed))
	return pod.IsTerminal(status.Phase), retryAfter, errors.Join(failures...)
}

// stopPlanned stops or resets the containers of the plan before any other starts, and adds them to killed.
func (s *Steps) stopPlanned(ctx context.Context, p *v1.Pod, observed *pod.Observed, actions plan.Actions, killed map[string]bool) error {
	all := slices.Clone(actions.Reset)
	for _, k := range actions.Kill {
		all = append(all, k.Container)
	}
	for _, c := range all {
		if killed[c.ID] {
			return fmt.Errorf("stop container %s: it is %s although the runtime has stopped it", c.Name, c.State)
		}
		killed[c.ID] = true
	}
	if len(actions.Reset) > 0 {
		return s.reset(ctx, p, actions.Reset)
	}
	return s.kill(ctx, p, actions.Kill, s.sandboxIPs(observed))
}

// soonest returns the shorter of two delays; zero is none.
func soonest(a, b time.Duration) time.Duration {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}

// mirror creates or updates the mirror of a static pod.
func (s *Steps) mirror(ctx context.Context, w pod.Work) error {
	if s.deps.Mirrors == nil || !pod.IsStatic(w.Pod) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, mirrorTimeout)
	defer cancel()
	_, err := s.deps.Mirrors.Ensure(ctx, w.Pod, w.Mirror)
	return err
}
