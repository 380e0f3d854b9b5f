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

// minExitVisible is how long the status shows a container as terminated before it shows
// CrashLoopBackOff, so that a client that watches the pod sees both.
const minExitVisible = 2 * time.Second

// delayStarts removes from the plan the containers that must not start yet: those that failed to
// start and those that crashed. It returns how long the first of them has to wait. Instances that
// this step has killed did not crash.
func (s *PodSteps) delayStarts(p *v1.Pod, observed *pod.Observed, a *plan.Actions, failed, killed map[string]bool) (retryAfter time.Duration) {
	a.Start = slices.DeleteFunc(a.Start, func(start plan.Start) bool {
		wait := s.startBackoff.remaining(keyOf(start), s.deps.Clock.Now())
		if failed[start.Container.Name] {
			wait = max(wait, 1) // the back-off may be over, but the retry belongs to the next step
		}
		if wait == 0 {
			wait = s.crashDelay(p, lastExit(observed, start, killed), start)
		}
		retryAfter = soonest(retryAfter, wait)
		return wait > 0
	})
	if len(a.Start) == 0 {
		a.NewSandbox = false
	}
	return retryAfter
}

// crashDelay returns how long a container must wait for its next start, and records the back-off
// as an event and a waiting reason.
func (s *PodSteps) crashDelay(p *v1.Pod, last *pod.Container, start plan.Start) time.Duration {
	if last == nil {
		return 0
	}
	now := s.deps.Clock.Now()
	exited := s.exitedAt(start.Container.Name, last, now)
	wait, delay := s.crashBackoff.remaining(keyOf(start), start.RestartCount, exited, now)
	if wait == 0 {
		return 0
	}
	if fresh := minExitVisible - now.Sub(exited); fresh > 0 {
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

// lastExit returns the newest exited instance of the container that counts for its back-off. An
// instance that this step has killed counts from the next step on, as it does after a restart of
// the kubelet.
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
