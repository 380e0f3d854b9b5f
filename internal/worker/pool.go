package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Pool runs the workers of all pods on the node. Its Table lists them.
type Pool struct {
	*Table
	deps Deps

	ctx context.Context // of Run; nil before it
	// startAfter holds, for pods without a worker yet, the channels that must be closed
	// before their first step.
	startAfter map[types.UID][]<-chan struct{}
	workerGone chan struct{} // closed and replaced when a worker is gone
	draining   bool          // pending changes are dropped

	startMu sync.Mutex // taken last
	running sync.WaitGroup
	closed  bool // Run's context is done: no worker starts
}

// New returns the pool that fills the table, and starts nothing. A table has one pool.
func New(table *Table, deps Deps) (*Pool, error) {
	if err := require.Set("new worker pool", map[string]any{
		"Table": table, "NewSteps": deps.NewSteps, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	return &Pool{Table: table, deps: deps, startAfter: map[types.UID][]<-chan struct{}{}, workerGone: make(chan struct{})}, nil
}

// Run runs the workers until ctx is done, and returns when every worker has stopped, or a *HungError
// if a step does not return. Pods that were handed to the pool before Run start with it.
func (p *Pool) Run(ctx context.Context) error {
	p.mu.Lock()
	p.ctx = ctx
	for _, w := range p.workers {
		p.start(w)
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.startMu.Lock()
	p.closed = true
	p.startMu.Unlock()
	return p.waitStopped()
}

// stopTimeout bounds the wait for running steps when the agent ends. Steps end when their context does;
// only one that hangs in the kernel takes longer.
const stopTimeout = 20 * time.Second

// HungError lists the pods whose step had not returned when the agent ended.
type HungError struct {
	Pods []string // namespace/name and stage
}

func (e *HungError) Error() string {
	return fmt.Sprintf("stop workers: %d steps hang after %v: %s", len(e.Pods), stopTimeout, strings.Join(e.Pods, ", "))
}

// waitStopped waits for running steps, but not forever.
func (p *Pool) waitStopped() error {
	stopped := make(chan struct{})
	go func() { p.running.Wait(); close(stopped) }()
	timer := p.deps.Clock.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-stopped:
		return nil
	case <-timer.C():
	}
	hung := &HungError{}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		w.mu.Lock()
		if w.cancel != nil { // a step runs
			hung.Pods = append(hung.Pods, fmt.Sprintf("%s/%s (%s)", w.ref.Namespace, w.ref.Name, w.stage))
		}
		w.mu.Unlock()
	}
	slices.Sort(hung.Pods)
	return hung
}

// start runs a new worker, once the pool runs. The caller holds p.mu.
func (p *Pool) start(w *worker) {
	if p.ctx != nil {
		p.resume(w)
	}
}

// resume runs a worker in a goroutine, until it is parked. The caller holds the lock of the pool, or that of a worker
// that has run.
func (p *Pool) resume(w *worker) {
	p.startMu.Lock()
	defer p.startMu.Unlock()
	if p.closed {
		return
	}
	p.running.Go(func() {
		if w.run(p.ctx) {
			p.forget(w)
		}
	})
}

// forget drops a worker whose pod is gone, and handles the change that waited for it.
func (p *Pool) forget(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.workers, w.ref.UID)
	w.mu.Lock()
	pending := w.pending
	w.mu.Unlock()
	if pending != nil && !p.draining {
		meter.With(p.deps.Meters.Restarted, pending.change.Pod)
		p.handle(pending.change, pending.failure)
	}
	close(p.workerGone)
	p.workerGone = make(chan struct{})
}

// Handle passes a change of a desired pod to its worker. A failure means that admission
// rejected the pod, and stops it before its first Sync.
func (p *Pool) Handle(c pod.Change, failure *pod.Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handle(c, failure)
}

func (p *Pool) handle(c pod.Change, failure *pod.Failure) {
	w, known := p.workers[c.Pod.UID]
	if known && w.deferChange(c, failure) {
		return
	}
	if !known {
		w = p.add(c.Pod)
		defer p.start(w)
	}
	w.update(func() bool {
		w.rejected = w.rejected || failure != nil
		w.work.Pod, w.work.Mirror, w.work.Resize, w.work.Orphan = c.Pod, c.Mirror, c.Resize, false
		w.changed = w.changed || c.Op == pod.Update
		if failure != nil && w.work.Failure == nil {
			w.work.Failure = failure
			return w.stop(nil)
		}
		switch {
		case c.Op == pod.Remove:
			w.work.Unwanted = true
			return w.stop(c.Pod.DeletionGracePeriodSeconds)
		case c.Pod.DeletionTimestamp != nil:
			return w.stop(c.Pod.DeletionGracePeriodSeconds)
		case w.stage == Syncing && c.Op != pod.Add && pod.IsTerminal(c.Pod.Status.Phase):
			return w.stop(nil) // its own status, or another component ended the pod
		}
		return false
	})
}

// deferChange keeps a change until the worker is gone if the pod was removed from its source:
// the pod stops first, and starts again after that. This happens to a static pod whose
// manifest is deleted and written again, because its UID is a hash of the manifest.
func (w *worker) deferChange(c pod.Change, failure *pod.Failure) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.work.Unwanted {
		return false
	}
	w.pending = &pendingChange{c, failure}
	if c.Op == pod.Remove {
		w.pending = nil
	}
	return true
}

// stop begins to stop the pod, or shortens its grace period. It reports whether to cancel the
// running step. The caller holds w.mu.
func (w *worker) stop(grace *int64) (interrupt bool) {
	switch w.stage {
	case Syncing:
		w.beginStop(grace)
		return true
	case Stopping:
		if grace != nil && (w.work.Grace == nil || *grace < *w.work.Grace) {
			w.work.Grace = grace
			return true
		}
	case Ended:
		// Finish again: the API object is being deleted, or the pod left its source.
		w.stage = Finishing
	}
	return false
}

// beginStop fixes the grace period, which can only become shorter from now on.
func (w *worker) beginStop(grace *int64) {
	w.stage, w.work.Grace = Stopping, pod.GracePeriod(w.work.Pod, grace)
}

// Evict stops a pod with the given failure within the given grace period, in seconds; nil
// means the pod's own.
func (p *Pool) Evict(uid types.UID, failure pod.Failure, grace *int64) (found bool) {
	p.mu.Lock()
	w, found := p.workers[uid]
	p.mu.Unlock()
	failure.Evicted = true
	if found {
		w.update(func() bool {
			if w.work.Failure == nil && w.stage == Syncing {
				w.work.Failure = &failure
			}
			return w.stop(grace)
		})
	}
	return found
}

// Finished returns a channel that is closed when the pod has released its resources: none of
// its containers runs, its volumes are unmounted and its cgroup is removed. found is false
// for a pod without a worker.
func (p *Pool) Finished(uid types.UID) (finished <-chan struct{}, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, found := p.workers[uid]
	if !found {
		return nil, false
	}
	return w.finished, true
}

// StartAfter delays the first step of a pod, which must not be in the pool yet, until none of
// the containers of the others runs. It marks the others as preempted. A pod that is in the
// pool already preempts them for a resize, which does not wait: its limits are raised at once,
// and it can use them when the others have stopped.
func (p *Pool) StartAfter(uid types.UID, others []types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range others {
		if w, found := p.workers[other]; found {
			w.mu.Lock()
			w.preempted = true
			w.mu.Unlock()
			if _, runs := p.workers[uid]; !runs {
				p.startAfter[uid] = append(p.startAfter[uid], w.stopped)
			}
		}
	}
}

// Orphan stops and removes a pod that the runtime has and no source does.
func (p *Pool) Orphan(ref pod.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.workers[ref.UID]; known {
		return
	}
	w := p.add(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}})
	w.stage = Stopping
	w.work.Orphan, w.work.Unwanted = true, true
	p.deps.Meters.Orphaned.Inc()
	p.start(w)
}

// add creates the worker of a new pod. A static pod waits until all earlier ones with its name are
// gone: they share host ports and host paths. The caller holds p.mu.
func (p *Pool) add(of *v1.Pod) *worker {
	w := &worker{
		ref:     pod.RefOf(of),
		deps:    &p.deps,
		steps:   p.deps.NewSteps(),
		wake:    notify.New(),
		resume:  p.resume,
		stopped: make(chan struct{}),
		gone:    make(chan struct{}),

		finished: make(chan struct{}),
		work:     pod.Work{Pod: of},
	}
	w.startAfter = p.startAfter[of.UID]
	delete(p.startAfter, of.UID)
	if pod.IsStatic(of) {
		for _, other := range p.byFullName(w.ref.FullName()) {
			w.startAfter = append(w.startAfter, other.gone)
		}
	}
	p.workers[of.UID] = w
	return w
}

// Wake has the pod's worker run another step: the pod was observed to have changed.
func (p *Pool) Wake(uid types.UID) {
	p.mu.Lock()
	w := p.workers[uid]
	p.mu.Unlock()
	if w == nil {
		return
	}
	w.update(func() bool {
		if w.stage == Ended { // a container may have appeared late: stop it too
			w.stage = Stopping
		}
		return false
	})
}

// WakeActive wakes the workers of all pods that have not ended.
func (p *Pool) WakeActive() {
	for _, active := range p.Active() {
		p.Wake(active.UID)
	}
}

// ObjectChanged marks that a ConfigMap or Secret that the pod uses has changed. If containers
// of the pod wait for one, they are retried at once.
func (p *Pool) ObjectChanged(uid types.UID) {
	p.mu.Lock()
	w := p.workers[uid]
	p.mu.Unlock()
	if w != nil {
		w.objectChanged()
	}
}

// Retry runs all failed steps again without waiting for their back-off: what they failed on,
// such as the API server, may be available again.
func (p *Pool) Retry() {
	p.mu.Lock()
	workers := slices.Collect(maps.Values(p.workers))
	p.mu.Unlock()
	for _, w := range workers {
		w.retry()
	}
}

// Drain stops and removes every pod, and returns when none is left or ctx is done.
func (p *Pool) Drain(ctx context.Context) error {
	for {
		p.mu.Lock()
		p.draining = true
		workers, gone := slices.Collect(maps.Values(p.workers)), p.workerGone
		p.mu.Unlock()
		if len(workers) == 0 {
			return nil
		}
		for _, w := range workers {
			w.update(func() bool {
				if w.work.Unwanted {
					return false
				}
				w.work.Unwanted = true
				return w.stop(nil)
			})
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
