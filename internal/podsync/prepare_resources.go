package podsync

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
)

// prepareResources prepares the resources of the containers that are to start. While the pod has to
// wait for them, that is the waiting reason of these containers.
func (s *PodSteps) prepareResources(ctx context.Context, p *v1.Pod, observed *pod.Observed, starts []plan.Start) error {
	err := s.deps.Resources.Prepare(ctx, p, observed)
	var wait *pod.WaitError
	waits := errors.As(err, &wait)
	for _, start := range starts {
		name := start.Container.Name
		switch {
		case waits:
			s.waitingReasons[name] = wait.Waiting
		case s.waitingReasons[name].Reason == pod.ReasonWaitingForDevice:
			delete(s.waitingReasons, name) // the wait is over
		}
	}
	return err
}

// isWait reports whether the pod waits, and is woken when it may go on. Such a step has not failed.
func isWait(err error) bool { return errors.As(err, new(*pod.WaitError)) }
