package host

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// countedMemory counts calls.
type countedMemory struct{ shrinks, grows atomic.Int32 }

func (m *countedMemory) Shrink() error { m.shrinks.Add(1); return errors.New("shrink failed") }
func (m *countedMemory) Grow()         { m.grows.Add(1) }

func TestReturnMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		var memory countedMemory
		var changed func()
		run := ReturnMemory(&memory, func(f func()) { changed = f }, clock.RealClock{}, slog.New(slog.DiscardHandler))
		go func() { done <- run(ctx) }()
		synctest.Wait()
		for _, step := range []struct {
			name                   string
			changes                int
			after                  time.Duration
			wantShrinks, wantGrows int32
		}{
			{"shrinks after the start", 0, quietPeriod, 1, 0},
			{"shrinks once", 0, time.Hour, 1, 0},
			{"grows with each change", 10, quietPeriod - time.Second, 1, 10},
			{"waits for the end of changes", 1, quietPeriod - time.Second, 1, 11},
			{"shrinks after the last change", 0, time.Second, 2, 11},
			{"grows again", 1, quietPeriod, 2, 12},
			{"waits a minute after the last time", 0, returnInterval - quietPeriod - time.Second, 2, 12},
			{"shrinks a minute after the last time", 0, time.Second, 3, 12},
			{"shrinks once again", 0, time.Hour, 3, 12},
		} {
			for range step.changes {
				changed()
				synctest.Wait()
			}
			time.Sleep(step.after)
			synctest.Wait()
			if shrinks, grows := memory.shrinks.Load(), memory.grows.Load(); shrinks != step.wantShrinks || grows != step.wantGrows {
				t.Errorf("%s: shrunk %d times and grown %d times, want %d and %d", step.name, shrinks, grows, step.wantShrinks, step.wantGrows)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := ReturnMemory(nil, nil, nil, nil)(t.Context()); err != nil {
		t.Errorf("without memory: %v", err)
	}
}

func TestProcessMemory(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Cleanup(new(ProcessMemory).Grow)
	memory := &ProcessMemory{}
	expect := func(what string, want uint64) {
		t.Helper()
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		if got := s[0].Value.Uint64(); got != want {
			t.Errorf("GOGC is %d %s, want %d", got, what, want)
		}
	}
	shrink := func() {
		t.Helper()
		if err := memory.Shrink(); err != nil {
			t.Error(err)
		}
	}
	shrink()
	expect("while nothing changes", quietPercent)
	memory.Grow()
	expect("during changes", smallPercent)
	large := make([]byte, largeHeap)
	runtime.GC()
	memory.Grow()
	expect("during changes, with a large heap", largePercent)
	runtime.KeepAlive(large)
	shrink()
	expect("while nothing changes again", quietPercent)
	memory.Grow()
	expect("during changes again", smallPercent)
	t.Setenv("GOGC", "100")
	shrink()
	expect("with the environment variable", smallPercent)
}
