package podsync

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

const reasonCrashLoop = "CrashLoopBackOff"

// exitShown is how long an exit is shown as such before the wait for the next start takes
// its place: whoever watches the pod sees both.
const exitShown = 2 * time.Second

// holdBack takes out of the plan what must not start now: containers that could not be
// started a moment ago, and those that crashed lately. It returns how long the first of
// them has to wait. Instances that this step has killed did not crash.
func (s *PodSteps) holdBack(p *v1.Pod, observed *pod.Observed, a *plan.Actions, held, killed map[string]bool) (again time.Duration) {
	a.Start = slices.DeleteFunc(a.Start, func(start plan.Start) bool {
		wait := s.startBackoff.remaining(keyOf(start), s.deps.Clock.Now())
		if held[start.Container.Name] {
			wait = max(wait, 1) // its time may have come, but its turn is in the next step
		}
		if wait == 0 {
			wait = s.crashed(p, lastExit(observed, start, killed), start)
		}
		again = soonest(again, wait)
		return wait > 0
	})
	if len(a.Start) == 0 {
		a.NewSandbox = false
	}
	return again
}

// crashed says how long a container must wait for its next start, and tells the user.
func (s *PodSteps) crashed(p *v1.Pod, last *pod.Container, start plan.Start) time.Duration {
	if last == nil {
		return 0
	}
	wait, delay := s.crashBackoff.remaining(keyOf(start), start.RestartCount, last.FinishedAt, s.deps.Clock.Now())
	if wait == 0 {
		return 0
	}
	if fresh := exitShown - s.deps.Clock.Since(last.FinishedAt); fresh > 0 {
		return min(wait, fresh)
	}
	if s.waitingReasons[start.Container.Name].Reason != reasonCrashLoop {
		s.deps.Events.Eventf(pod.EventRef(p, start.Container.Name), v1.EventTypeWarning, "BackOff",
			"Back-off restarting failed container %s in pod %s", start.Container.Name, pod.RefOf(p))
	}
	s.waitingReasons[start.Container.Name] = pod.Waiting{
		Reason:  reasonCrashLoop,
		Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", delay, start.Container.Name, pod.RefOf(p)),
	}
	return wait
}

func keyOf(start plan.Start) containerKey {
	return containerKey{name: start.Container.Name, hash: runtime.ContainerHash(start.Container)}
}

// lastExit is the newest exit of the container that counts when it is to start again. That
// of an instance which was killed to be replaced counts from the next step on: then it is
// part of the pod's past, as it is for an agent that starts anew.
func lastExit(observed *pod.Observed, start plan.Start, killed map[string]bool) *pod.Container {
	if start.Adopt != "" {
		return nil
	}
	for _, c := range observed.Instances(start.Container.Name) {
		if c.State == pod.Exited && !killed[c.ID] {
			return &c
		}
	}
	return nil
}
