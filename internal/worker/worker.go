package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"swiftlet/internal/backoff"
	"swiftlet/internal/contain"
	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
)

// worker is one pod's state machine. mu guards what the next step does; it is not held while
// a step runs.
type worker struct {
	ref   pod.Ref
	deps  *Deps
	steps Steps
	wake  notify.Signal // requests the next step
	// resume runs the worker in a new goroutine. It may be called with mu held.
	resume func(*worker)

	mu     sync.Mutex
	parked bool // no goroutine runs the worker: resume does so when it is woken
	stage  Stage
	work   pod.Work
	// pendingSince is when the first event happened that the next step has to handle; zero if
	// there was none since the last step began. changed: the pod's spec changed among them.
	pendingSince  time.Time
	changed       bool
	syncStarted   bool               // the first Sync has begun
	cancel        context.CancelFunc // cancels the running step; nil while none runs
	failures      int                // failed steps in a row
	awaitsObjects bool               // from the outcome of the last step
	// startAfter are channels that must all be closed before the pod's first step: an older
	// pod with the same name, or pods that it preempts, have yet to stop. Only run reads them.
	startAfter []<-chan struct{}
	preempted  bool          // stops to make room for another pod, which counts as active instead
	rejected   bool          // not admitted: does not count as active
	stopped    chan struct{} // closed when none of the pod's containers runs
	finished   chan struct{} // closed when the pod has released its resources
	gone       chan struct{} // closed when the worker is done
	// pending is a change that came after the pod's removal. The pool handles it, with a new
	// worker, when this one is gone.
	pending *pendingChange
}

// pendingChange is a change that waits for a worker with the same UID to be gone.
type pendingChange struct {
	change  pod.Change
	failure *pod.Failure
}

// update calls change under the lock and wakes the worker. If change returns true, update
// cancels the running step: its purpose has changed.
func (w *worker) update(change func() (interrupt bool)) {
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
	if w.parked {
		w.parked = false
		w.resume(w)
	}
}

// objectChanged sets ObjectsChanged for the next Sync, and wakes the worker if the last Sync
// waits for objects. If a Sync is running, step looks at its outcome.
func (w *worker) objectChanged() {
	w.mu.Lock()
	w.work.ObjectsChanged = true
	awaits := w.awaitsObjects
	w.mu.Unlock()
	if awaits {
		w.update(func() bool { return false })
	}
}

// retry runs a failed step again without waiting for its back-off.
func (w *worker) retry() {
	w.mu.Lock()
	failed := w.failures > 0
	w.failures = 0
	w.mu.Unlock()
	if failed {
		w.update(func() bool { return false })
	}
}

// run performs steps until the pod is gone, the worker is parked, or ctx is done. Pods outlive the agent: when
// ctx is done the pod is left as it is.
func (w *worker) run(ctx context.Context) (gone bool) {
	if !w.awaitOthers(ctx) {
		return false
	}
	for ctx.Err() == nil {
		retryAfter, done := w.step(ctx)
		if done {
			close(w.gone)
			return true
		}
		if retryAfter == 0 && w.park() {
			return false
		}
		w.wait(ctx, retryAfter)
	}
	return false
}

// awaitOthers returns true when startAfter are closed, or when the pod is to stop without having started: one that
// it waits for may hang. It returns false when ctx is done.
func (w *worker) awaitOthers(ctx context.Context) bool {
	if len(w.startAfter) > 0 {
		w.mu.Lock()
		of := w.work.Pod
		w.mu.Unlock()
		meter.With(w.deps.Waits, of)
	}
	for len(w.startAfter) > 0 && w.isSyncing() {
		select {
		case <-w.startAfter[0]:
			w.startAfter = w.startAfter[1:]
		case <-w.wake:
		case <-ctx.Done():
			return false
		}
	}
	w.startAfter = nil
	return true
}

func (w *worker) isSyncing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stage == Syncing
}

// park returns true if the worker has nothing to do until it is woken. Its goroutine must end then: most pods have
// settled, and a goroutine that has performed a step keeps several kilobytes of stack.
func (w *worker) park() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parked = len(w.wake) == 0
	return w.parked
}

// wait returns when the worker is woken, when retryAfter (if positive) has passed, or when
// ctx is done.
func (w *worker) wait(ctx context.Context, retryAfter time.Duration) {
	var due <-chan time.Time
	if retryAfter > 0 {
		if w.deps.Retries != nil && retryAfter > now {
			w.deps.Retries(w.ref.UID, w.deps.Clock.Now().Add(retryAfter))
		}
		timer := w.deps.Clock.NewTimer(retryAfter)
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-w.wake:
	case <-due:
	}
}

// step performs one step of the current stage. A retryAfter of zero means that the next
// step waits until the worker is woken.
func (w *worker) step(ctx context.Context) (retryAfter time.Duration, done bool) {
	w.mu.Lock()
	if w.stage == Gone {
		w.mu.Unlock()
		return 0, true
	}
	stage, work := w.stage, w.work
	work.Returns = w.pending != nil
	stopTimer := w.measure(stage, work.Pod)
	w.pendingSince, w.changed = time.Time{}, false
	w.work.ObjectsChanged = false
	select { // this step handles what woke the worker
	case <-w.wake:
	default:
	}
	stepCtx, cancel := context.WithCancel(ctx)
	w.cancel = cancel
	w.mu.Unlock()
	defer cancel()

	began := w.deps.Clock.Now()
	outcome, err := contain.Value(func() (pod.Outcome, error) { return w.perform(stepCtx, stage, work) })
	stopTimer()
	w.deps.Log.Debug("pod step finished", w.ref.Attr(), "stage", stage.String(), "duration", w.deps.Clock.Since(began), "err", err)

	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel = nil
	w.awaitsObjects = outcome.AwaitsObjects
	if w.awaitsObjects && w.work.ObjectsChanged {
		outcome.RetryAfter = now
	}
	if panicked := (*contain.Panic)(nil); errors.As(err, &panicked) {
		return w.panicked(stage, panicked), false
	}
	if err != nil {
		return soonest(w.retryDelay(stage, err, stepCtx.Err() != nil), outcome.RetryAfter), false
	}
	w.failures = 0
	retryAfter = w.advance(stage, outcome)
	return retryAfter, w.stage == Gone
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

// soonest returns the shorter of two delays; a retryAfter of zero is no delay at all and is
// ignored.
func soonest(retry, retryAfter time.Duration) time.Duration {
	if retryAfter > 0 {
		return min(retry, retryAfter)
	}
	return retry
}

// now is a delay after which the next step follows at once.
const now = time.Nanosecond

// advance moves to the next stage after a step that succeeded.
func (w *worker) advance(did Stage, outcome pod.Outcome) (retryAfter time.Duration) {
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
		closeOnce(w.stopped)
		return now
	case Finishing:
		closeOnce(w.finished)
		if !w.pendingSince.IsZero() {
			return now // the pod changed during the step: finish it again
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

// closeOnce closes c unless it is closed already: a stage may be passed twice. The caller
// holds w.mu.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// Back-off of a failed step. It starts short because most failures are transient.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// retryDelay counts a failed step and returns its back-off. A step that was cancelled on
// purpose has not failed.
func (w *worker) retryDelay(stage Stage, err error, interrupted bool) time.Duration {
	if interrupted {
		return now
	}
	delay := w.nextDelay()
	w.deps.Log.Error("Error syncing pod, skipping", w.ref.Attr(), "stage", stage.String(), "retryIn", delay, "err", err)
	return delay
}

func (w *worker) nextDelay() time.Duration {
	w.failures++
	return backoff.Backoff{First: firstRetry, Longest: lastRetry}.After(w.failures)
}
