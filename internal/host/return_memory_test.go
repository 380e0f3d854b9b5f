package host

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestReturnMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		var freed atomic.Int32
		var changed func()
		run := ReturnMemory(func() { freed.Add(1) }, func(f func()) { changed = f }, clock.RealClock{})
		go func() { done <- run(ctx) }()
		synctest.Wait()
		for i, step := range []struct {
			changes int
			after   time.Duration
			want    int32
		}{
			{0, quietPeriod, 1}, // after the start
			{0, time.Hour, 1},
			{10, quietPeriod - time.Second, 1},
			{1, quietPeriod - time.Second, 1},
			{0, time.Second, 2},
			{0, time.Hour, 2},
		} {
			for range step.changes {
				changed()
			}
			time.Sleep(step.after)
			synctest.Wait()
			if got := freed.Load(); got != step.want {
				t.Errorf("step %d: memory was returned %d times, want %d", i, got, step.want)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := ReturnMemory(nil, nil, nil)(t.Context()); err != nil {
		t.Errorf("without a function that returns memory: %v", err)
	}
}
