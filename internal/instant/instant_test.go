package instant

import (
	"testing"
	"testing/synctest"
	"time"

	"swiftlet/test/stepclock"
)

func TestStepChangesNothing(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock stepclock.Clock
				var steps Steps
				steps.Stepped(clock.Now())
				exited := Past(clock.Wall().Add(-3*time.Second), clock.Now())
				due := Of(clock.Wall().Add(time.Minute), clock.Now())
				clock.Step(step)
				if got := steps.Stepped(clock.Now()); got != step {
					t.Errorf("a step of %v is found as %v", step, got)
				}
				time.Sleep(time.Second)
				if got := clock.Since(exited); got != 4*time.Second {
					t.Errorf("age is %v after the step, want 4s", got)
				}
				if got := due.Sub(clock.Now()); got != 59*time.Second {
					t.Errorf("due in %v after the step, want 59s", got)
				}
				if got := steps.Stepped(clock.Now()); got != 0 {
					t.Errorf("found a step of %v without one", got)
				}
			})
		})
	}
}

func TestPastOfFutureIsNow(t *testing.T) {
	now := time.Now()
	if got := Past(now.Add(time.Hour).Round(0), now); !got.Equal(now) {
		t.Errorf("got %v, want %v", got, now)
	}
}
