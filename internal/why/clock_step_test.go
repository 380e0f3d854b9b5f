package why

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/stepclock"
)

func eachStep(t *testing.T, test func(t *testing.T, clock *stepclock.Clock, step time.Duration)) {
	for name, step := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, new(stepclock.Clock), step) })
		})
	}
}

// TestStepsAgeAcrossClockStep: how long a step takes and when it is tried again does not change when the clock is set.
func TestStepsAgeAcrossClockStep(t *testing.T) {
	eachStep(t, func(t *testing.T, clock *stepclock.Clock, step time.Duration) {
		b, mount, image := New(), Step{Volume, "data"}, Step{Image, "app"}
		b.Track(newPod("app"), Starting, nil, clock.Now())
		b.Begin("u1", mount, clock.Now())
		b.End("u1", image, errors.New("no"), clock.Now(), clock.Now().Add(time.Minute))
		time.Sleep(4 * time.Second)
		clock.Step(step)
		time.Sleep(time.Second)
		r, _ := b.Report("u1", nil, clock.Now())
		for _, s := range r.Steps[1:] {
			if age := r.At.Sub(s.Began); age != 5*time.Second {
				t.Errorf("%s began %v ago, want 5s", s.Kind, age)
			}
			if next := s.Next.Sub(r.At); s.Kind == Image && next != 55*time.Second {
				t.Errorf("%s is tried again in %v, want 55s", s.Kind, next)
			}
		}
		b.End("u1", mount, nil, clock.Now(), time.Time{})
		time.Sleep(time.Hour)
		r, _ = b.Report("u1", nil, clock.Now())
		for _, s := range r.Steps {
			if took := s.Ended.Sub(s.Began); s.Kind == Volume && took != 5*time.Second {
				t.Errorf("%s took %v, want 5s", s.Kind, took)
			}
		}
	})
}

// TestProbeExplainsExitAcrossClockStep: the runtime's times are those of the clock as it was.
func TestProbeExplainsExitAcrossClockStep(t *testing.T) {
	eachStep(t, func(t *testing.T, clock *stepclock.Clock, step time.Duration) {
		b, p := New(), newPod("app")
		b.Track(p, Starting, nil, clock.Now())
		sentence := func() string {
			r, _ := b.Report("u1", &p.Status, clock.Now())
			return r.Sentence
		}
		exit := func() {
			p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "app", RestartCount: 1,
				State:                v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 3, FinishedAt: metav1.NewTime(clock.Wall())}},
			}}
		}
		b.End("u1", Step{Liveness, "app"}, Because(ProbeFailed, "", errors.New("500")), clock.Now(), time.Time{})
		time.Sleep(2 * time.Second)
		exit()
		clock.Step(step)
		if got := sentence(); !strings.Contains(got, "was stopped") {
			t.Errorf("after the probe has failed: %s", got)
		}
		time.Sleep(time.Minute)
		exit()
		time.Sleep(time.Minute)
		b.End("u1", Step{Liveness, "app"}, Because(ProbeFailed, "", errors.New("500")), clock.Now(), time.Time{})
		clock.Step(-step)
		if got := sentence(); strings.Contains(got, "was stopped") {
			t.Errorf("before the probe has failed: %s", got)
		}
	})
}
