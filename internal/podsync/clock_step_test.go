package podsync

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"swiftlet/internal/backoff"
	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/test/stepclock"
)

type noEvents struct{}

func (noEvents) Eventf(runtime.Object, string, string, string, ...any) {}

func stepped(clock *stepclock.Clock, cfg Config) *PodSteps {
	curve := backoff.Backoff{First: 10 * time.Second, Longest: 5 * time.Minute}
	return &PodSteps{Steps: &Steps{cfg: cfg, deps: Deps{Clock: clock, Events: noEvents{}}}, memory: newMemory(curve)}
}

var steps = map[string]time.Duration{"forward": time.Hour, "back": -time.Hour}

// The back-off of a crashed container is over when it would have been without the step.
func TestCrashBackoffAcrossClockStep(t *testing.T) {
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock stepclock.Clock
				s := stepped(&clock, Config{})
				p, c := &v1.Pod{}, &v1.Container{Name: "c"}
				crashed := func(n int) *pod.Container {
					return &pod.Container{ID: string(rune('0' + n)), Name: "c", State: pod.Exited, FinishedAt: clock.Wall()}
				}
				if wait := s.crashDelay(p, crashed(1), plan.Start{Container: c, RestartCount: 1}); wait != 0 {
					t.Fatalf("the first restart waits %v", wait)
				}
				second := crashed(2)
				time.Sleep(3 * time.Second)
				next := plan.Start{Container: c, RestartCount: 2}
				if wait := s.crashDelay(p, second, next); wait != 7*time.Second {
					t.Fatalf("waits %v before the step, want 7s", wait)
				}
				clock.Step(step)
				if wait := s.crashDelay(p, second, next); wait != 7*time.Second {
					t.Errorf("waits %v after the step, want 7s", wait)
				}
				time.Sleep(7 * time.Second)
				if wait := s.crashDelay(p, second, next); wait != 0 {
					t.Errorf("waits %v after the back-off", wait)
				}
			})
		})
	}
}

// A container whose exit is in the future, by the runtime's clock, waits for its back-off and no longer.
func TestCrashBackoffOfExitInFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock stepclock.Clock
		s := stepped(&clock, Config{})
		c := &v1.Container{Name: "c"}
		s.crashDelay(&v1.Pod{}, &pod.Container{ID: "1", FinishedAt: clock.Wall()}, plan.Start{Container: c, RestartCount: 1})
		last := &pod.Container{ID: "2", FinishedAt: clock.Wall().Add(time.Hour)}
		s.crashDelay(&v1.Pod{}, last, plan.Start{Container: c, RestartCount: 2})
		time.Sleep(10 * time.Second)
		if wait := s.crashDelay(&v1.Pod{}, last, plan.Start{Container: c, RestartCount: 2}); wait != 0 {
			t.Errorf("waits %v after the back-off", wait)
		}
	})
}

// A step neither ends a pod before its active deadline nor keeps it longer.
func TestActiveDeadlineAcrossClockStep(t *testing.T) {
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock stepclock.Clock
				s := stepped(&clock, Config{})
				limit := int64(60)
				p := &v1.Pod{Spec: v1.PodSpec{ActiveDeadlineSeconds: &limit}}
				start := metav1.NewTime(clock.Wall())
				status := &v1.PodStatus{StartTime: &start}
				if failure, left := s.deadline(p, status); failure != nil || left != time.Minute {
					t.Fatalf("at the start: %v, %v left", failure, left)
				}
				clock.Step(step)
				time.Sleep(20 * time.Second)
				if failure, left := s.deadline(p, status); failure != nil || left != 40*time.Second {
					t.Errorf("after the step: %v, %v left, want 40s", failure, left)
				}
				time.Sleep(40 * time.Second)
				if failure, _ := s.deadline(p, status); failure == nil {
					t.Error("the pod has not ended at its deadline")
				}
			})
		})
	}
}

// After a step back, dead containers have a creation time in the future. They are garbage nevertheless.
func TestGarbageAfterClockStepBack(t *testing.T) {
	var clock stepclock.Clock
	r := &remover{}
	s := stepped(&clock, Config{MaxDeadPerContainer: 1, MaxDead: -1})
	s.deps.Runtime = r
	o := pod.Observed{Containers: []pod.Container{
		{ID: "2", Name: "a", State: pod.Exited, CreatedAt: clock.Wall()}, {ID: "1", Name: "a", State: pod.Exited, CreatedAt: clock.Wall()},
	}}
	clock.Step(-time.Hour)
	if wait := s.collectGarbage(t.Context(), &o); wait != 0 || len(r.removed) != 1 {
		t.Errorf("removed %v, waits %v", r.removed, wait)
	}
}
