package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"swiftlet/internal/contain"
	"swiftlet/internal/pod"
)

// recorded has lines that several goroutines record.
type recorded struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorded) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *recorded) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

// Eventf records an event as "type reason message".
func (r *recorded) Eventf(_ runtime.Object, eventtype, reason, format string, args ...any) {
	r.add(eventtype + " " + reason + " " + fmt.Sprintf(format, args...))
}

// Write records a line of a log.
func (r *recorded) Write(line []byte) (int, error) {
	r.add(string(line))
	return len(line), nil
}

// A panic in a step is an error of its pod: counted, logged with its stack, shown as an event and
// retried with back-off. The pod's steps begin with an empty memory, as after a restart of the agent.
func TestPanicHarmsItsPodOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteps()
		var failing atomic.Bool
		failing.Store(true)
		s.on["sync"] = func(_ context.Context, w pod.Work) (pod.Outcome, error) {
			if w.Pod.Name == "a" && failing.Load() {
				var missing *pod.Work
				_ = missing.Pod
			}
			return pod.Outcome{}, nil
		}
		var events, log, counted recorded
		var made atomic.Int64
		p, err := New(NewTable(), Deps{
			NewSteps: func() Steps { made.Add(1); return s }, Events: &events, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
			Panics: contain.Reporter{Log: slog.New(slog.NewTextHandler(&log, nil)), Count: counted.add},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
		settle()
		p.Handle(pod.Change{Op: pod.Add, Pod: named("b")}, nil)
		settle()
		s.expect(t, "sync a", "sync b")
		if got := counted.all(); len(got) != 1 || got[0] != "worker" {
			t.Errorf("counted %q, want one panic of a worker", got)
		}
		if got := events.all(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning InternalError ") || !strings.Contains(got[0], "syncing") {
			t.Errorf("events: %q", got)
		}
		if got := strings.Join(log.all(), ""); !strings.Contains(got, "panic_test.go") {
			t.Errorf("the log has no stack: %s", got)
		}
		if n := made.Load(); n != 3 {
			t.Errorf("%d memories were made, want one for each pod and one after the panic", n)
		}
		time.Sleep(firstRetry)
		s.expect(t, "sync a")
		settle()
		if len(s.seen) > 0 {
			t.Errorf("retried without back-off: %q", <-s.seen)
		}
		failing.Store(false)
		time.Sleep(2 * firstRetry)
		s.expect(t, "sync a")
		// A pod whose worker has panicked can be deleted.
		p.Handle(pod.Change{Op: pod.Remove, Pod: deleted("a", 1)}, nil)
		settle()
		s.expect(t, "stop a 1", "finish a", "remove a")
		cancel()
		<-done
	})
}

// A panic in a canceled step does not loop without a delay.
func TestPanicOfCanceledStepIsDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteps()
		s.on["sync"] = func(ctx context.Context, _ pod.Work) (pod.Outcome, error) { <-ctx.Done(); panic("canceled") }
		s.on["stop"] = func(context.Context, pod.Work) (pod.Outcome, error) { panic("again") }
		p := run(t, s)
		p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
		settle()
		p.Handle(pod.Change{Op: pod.Delete, Pod: deleted("a", 1)}, nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(s.seen); n > 10 {
			t.Errorf("%d steps in 10 s, want a back-off", n)
		}
	})
}

// Run returns when a step does not: the agent must be able to stop while a call hangs in the kernel.
func TestRunReturnsWhileStepHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteps()
		release := make(chan struct{})
		defer close(release)
		s.on["sync"] = func(context.Context, pod.Work) (pod.Outcome, error) { <-release; return pod.Outcome{}, nil }
		p, err := New(NewTable(), Deps{NewSteps: func() Steps { return s }, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		p.Handle(pod.Change{Op: pod.Add, Pod: named("a")}, nil)
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		settle()
		cancel()
		select {
		case err := <-done:
			var hung *HungError
			if !errors.As(err, &hung) || len(hung.Pods) != 1 || !strings.Contains(err.Error(), "ns/a") || !strings.Contains(err.Error(), "syncing") {
				t.Errorf("got %v, want an error that names the pod and the step", err)
			}
		case <-time.After(time.Minute):
			t.Error("Run waits for a step that hangs")
		}
	})
}
