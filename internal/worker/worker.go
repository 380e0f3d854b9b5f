package worker

import (
	"context"
	"sync"
	"time"

	"swiftlet/internal/backoff"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
)

// worker is one pod's state machine. Its lock guards what is to be done; the steps run
// outside of it.
type worker struct {
	ref   pod.Ref
	deps  Deps
	steps Steps
	wake  notify.Signal // "look again"

	mu    sync.Mutex
	stage Stage
	work  pod.Work
	// pendingSince is when the first of what the next step has to see happened; zero if
	// nothing has since the last step began. changed: the pod was changed among it.
	pendingSince time.Time
	changed      bool
	begun        bool               // the first Sync was
	cancel       context.CancelFunc // ends the running step, nil while none runs
	failures     int                // steps that failed in a row
	// awaitsObjects is from the outcome of the last step.
	awaitsObjects bool
	// hold must close, each of it, before the pod's first step: an older pod of the same
	// name is still ending, or others that make room for it are.
	hold []<-chan struct{}
	// yields: the pod ends to make room for another, which counts in its place.
	yields bool
	// rejected: the pod was not admitted, and takes no room from others.
	rejected bool
	quiet    chan struct{} // closed when nothing of the pod runs any more
	// finished is closed when the pod has given back what it held.
	finished chan struct{}
	gone     chan struct{} // closed when the worker has nothing left to do
	// next is the pod that follows when this one is gone: it is wanted again.
	next *wish
}

// wish is a change that waits for its turn.
type wish struct {
	change  pod.Change
	failure *pod.Failure
}

// set changes what is wanted under the lock and wakes the worker. Where interrupt is set,
// the running step is ended because its purpose has changed.
func (w *worker) set(change func() (interrupt bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	interrupt := change()
	if w.pendingSince.IsZero() {
		w.pendingSince = w.deps.Clock.Now()
	}
	if interrupt && w.cancel != nil {
		w.cancel()
	}
	w.wake.Notify()
}

// objectChanged tells the next Sync, and wakes the worker if the last one waits for that. A
// Sync that runs now decides at its end.
func (w *worker) objectChanged() {
	w.mu.Lock()
	w.work.ObjectsChanged = true
	awaits := w.awaitsObjects
	w.mu.Unlock()
	if awaits {
		w.set(func() bool { return false })
	}
}

// retry ends the wait of a step that failed.
func (w *worker) retry() {
	w.mu.Lock()
	failed := w.failures > 0
	w.failures = 0
	w.mu.Unlock()
	if failed {
		w.set(func() bool { return false })
	}
}

// run performs steps until the pod is gone or ctx ends. Pods outlive the agent, so the
// end of ctx leaves everything as it is.
func (w *worker) run(ctx context.Context) {
	for _, hold := range w.hold {
		select {
		case <-hold:
		case <-ctx.Done():
			return
		}
	}
	for ctx.Err() == nil {
		again, done := w.step(ctx)
		if done {
			close(w.gone)
			return
		}
		w.wait(ctx, again)
	}
}

// wait sleeps until something happens, or until it is time to look again.
func (w *worker) wait(ctx context.Context, again time.Duration) {
	var due <-chan time.Time
	if again > 0 {
		timer := w.deps.Clock.NewTimer(again)
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-w.wake:
	case <-due:
	}
}

// step performs the step that the pod's stage asks for. It returns when to look again;
// zero means when woken.
func (w *worker) step(ctx context.Context) (again time.Duration, done bool) {
	w.mu.Lock()
	if w.stage == Gone {
		w.mu.Unlock()
		return 0, true
	}
	stage, work := w.stage, w.work
	work.Returns = w.next != nil
	measure := w.measure(stage, work.Pod)
	w.pendingSince, w.changed = time.Time{}, false
	w.work.ObjectsChanged = false
	select { // what woke it is part of what this step sees
	case <-w.wake:
	default:
	}
	stepCtx, cancel := context.WithCancel(ctx)
	w.cancel = cancel
	w.mu.Unlock()
	defer cancel()

	began := w.deps.Clock.Now()
	outcome, err := w.perform(stepCtx, stage, work)
	measure()
	w.deps.Log.Debug("step", "pod", w.ref.String(), "stage", stage.String(), "took", w.deps.Clock.Since(began), "err", err)

	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel = nil
	w.awaitsObjects = outcome.AwaitsObjects
	if w.awaitsObjects && w.work.ObjectsChanged {
		outcome.RetryAfter = now
	}
	if err != nil {
		return soonest(w.failed(stage, err, stepCtx.Err() != nil), outcome.RetryAfter), false
	}
	w.failures = 0
	again = w.advance(stage, outcome)
	return again, w.stage == Gone
}

func (w *worker) perform(ctx context.Context, stage Stage, work pod.Work) (pod.Outcome, error) {
	switch stage {
	case Syncing:
		return w.steps.Sync(ctx, work)
	case Stopping:
		return pod.Outcome{}, w.steps.Stop(ctx, work)
	case Finishing:
		return pod.Outcome{}, w.steps.Finish(ctx, work)
	case Removing:
		return pod.Outcome{}, w.steps.Remove(ctx, work)
	}
	return pod.Outcome{}, nil
}

// soonest is the shorter of two waits, of which the second may be none.
func soonest(retry, again time.Duration) time.Duration {
	if again > 0 {
		return min(retry, again)
	}
	return retry
}

// now is the shortest wait: the next step follows at once.
const now = time.Nanosecond

// advance moves to the stage that follows a step that succeeded.
func (w *worker) advance(did Stage, outcome pod.Outcome) (again time.Duration) {
	if w.stage != did { // the stage was changed while the step ran
		return now
	}
	switch did {
	case Syncing:
		if outcome.Failure != nil {
			w.work.Failure = outcome.Failure
		}
		if outcome.Ended || outcome.Failure != nil {
			w.beginStop(nil)
			return now
		}
		return outcome.RetryAfter
	case Stopping:
		w.stage = Finishing
		closeOnce(w.quiet)
		return now
	case Finishing:
		closeOnce(w.finished)
		if !w.pendingSince.IsZero() {
			return now // the pod changed meanwhile: finish what it is now
		}
		w.stage = Ended
		if w.work.Unwanted {
			w.stage = Removing
			return now
		}
	case Removing:
		w.stage = Gone
	}
	return 0
}

// closeOnce closes a channel of the worker's own, which may have come this way before.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// Retries of a failed step: soon at first, because most failures pass at once.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// failed decides when a failed step is tried again. A step that was interrupted on
// purpose has not failed.
func (w *worker) failed(stage Stage, err error, interrupted bool) time.Duration {
	if interrupted {
		return now
	}
	w.failures++
	delay := backoff.Backoff{First: firstRetry, Longest: lastRetry}.After(w.failures)
	w.deps.Log.Warn("pod step failed", "pod", w.ref.String(), "stage", stage.String(), "err", err, "retry", delay)
	return delay
}
