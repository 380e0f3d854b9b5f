package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestReturnMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		changes, freed := make(chan struct{}), 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			ReturnMemory(ctx, changes, func() { freed++ }, clock.RealClock{})
		}()
		for i, step := range []struct {
			changes int
			after   time.Duration
			want    int
		}{
			{0, quietPeriod, 1}, // after the start
			{0, time.Hour, 1},
			{10, quietPeriod - time.Second, 1},
			{1, quietPeriod - time.Second, 1},
			{0, time.Second, 2},
			{0, time.Hour, 2},
		} {
			for range step.changes {
				changes <- struct{}{}
			}
			time.Sleep(step.after)
			synctest.Wait()
			if freed != step.want {
				t.Errorf("step %d: memory was returned %d times, want %d", i, freed, step.want)
			}
		}
		cancel()
		<-done
	})
}
