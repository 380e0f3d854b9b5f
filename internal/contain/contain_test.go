package contain

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCallReturnsPanicAsError(t *testing.T) {
	var broken map[string]int
	err := Call(func() error { broken["x"] = 1; return nil })
	var panicked *Panic
	if !errors.As(err, &panicked) || !strings.Contains(string(panicked.Stack), "contain_test.go") {
		t.Errorf("got %v, want a *Panic with the stack", err)
	}
	var fault runtime.Error
	if !errors.As(err, &fault) {
		t.Errorf("%v does not wrap the runtime's error", err)
	}
	want := errors.New("plain")
	if err := Call(func() error { return want }); err != want {
		t.Errorf("got %v, want the error of the function", err)
	}
}

func TestGoPassesPanicToOwner(t *testing.T) {
	wait := Go(func() { panic("boom") })
	err := Call(func() error { wait(); return nil })
	var panicked *Panic
	if !errors.As(err, &panicked) || panicked.Value != "boom" {
		t.Errorf("got %v, want the panic of the goroutine", err)
	}
	Go(func() {})()
}

func TestDoReturnsWhenContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Calls
		release := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Do(ctx, "stat /mnt", func() error { <-release; return nil })
		var hang *HangError
		if !errors.As(err, &hang) || hang.Name != "stat /mnt" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a *HangError", err)
		}
		if !c.Hangs("stat /mnt") {
			t.Error("the abandoned call is not listed")
		}

		// A second call of that name waits for the first.
		second := make(chan error)
		began := false
		go func() { second <- c.Do(t.Context(), "stat /mnt", func() error { began = true; return nil }) }()
		synctest.Wait()
		if began {
			t.Error("two calls of one name run at the same time")
		}
		close(release)
		if err := <-second; err != nil || !began {
			t.Errorf("second call: %v, began %v", err, began)
		}
		synctest.Wait()
		if left := c.Running(); len(left) != 0 || c.abandoned != 0 {
			t.Errorf("left: %v, %d abandoned", left, c.abandoned)
		}
	})
}

func TestDoLimitsAbandonedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Calls{Limit: 2}
		release := make(chan struct{})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, name := range []string{"a", "b"} {
			if err := c.Do(ended, name, func() error { <-release; return nil }); !errors.As(err, new(*HangError)) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if err := c.Do(t.Context(), "c", func() error { return nil }); !errors.As(err, new(*LimitError)) {
			t.Errorf("got %v, want a *LimitError", err)
		}
		close(release)
		synctest.Wait()
		if err := c.Do(t.Context(), "c", func() error { return nil }); err != nil {
			t.Errorf("after the calls have returned: %v", err)
		}
	})
}

func TestDoReturnsPanic(t *testing.T) {
	var c Calls
	if err := c.Do(t.Context(), "x", func() error { panic("boom") }); !errors.As(err, new(*Panic)) {
		t.Errorf("got %v, want a *Panic", err)
	}
	if left := c.Running(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
