package statefile

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Changed does not wait for the disk; Written does, and one write serves all that wait.
func TestWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes, disk := 0, make(chan struct{})
		w := NewWriter(func() error { writes++; <-disk; return nil })
		if err := w.Written(t.Context()); err != nil || writes != 0 {
			t.Errorf("without a change: %v, %d writes", err, writes)
		}
		w.Changed()
		var waiting sync.WaitGroup
		for range 10 {
			waiting.Go(func() {
				if err := w.Written(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		w.Changed() // while the disk is slow
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Written(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("returned %v before the change was written", err)
		}
		close(disk)
		waiting.Wait()
		if err := w.Written(t.Context()); err != nil || writes != 2 {
			t.Errorf("%v, %d writes, want 2", err, writes)
		}
	})
}

// A failed write is repeated by the next call.
func TestFailedWriteIsRepeated(t *testing.T) {
	broken := errors.New("disk full")
	fails := broken
	w := NewWriter(func() error { return fails })
	w.Changed()
	for range 2 {
		if err := w.Written(t.Context()); err != broken {
			t.Errorf("got %v", err)
		}
	}
	fails = nil
	if err := w.Written(t.Context()); err != nil {
		t.Error(err)
	}
}
