package worker

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Deps is what a pool works with.
type Deps struct {
	// NewSteps makes the steps of one pod. The pool calls it once for each worker, under its
	// lock.
	NewSteps func() Steps
	Meters   Meters
	Clock    clock.Clock
	Log      *slog.Logger
}

// Meters measure the work; each may be nil.
type Meters struct {
	// Began is told of each pod before its first Sync.
	Began func(*v1.Pod)
	// Step takes the time from what asked for a step to its end, by operation: create,
	// update, sync, kill, terminated.
	Step meter.TimingOf
	// Restarted is told of a pod that follows one of the same identity.
	Restarted func(*v1.Pod)
	// Orphaned counts the pods that the runtime had and nobody wanted.
	Orphaned meter.Count
}

// Pool runs the workers of all pods on the node, which its Table lists.
type Pool struct {
	*Table
	deps Deps

	ctx context.Context // of Run; nil before it
	// follows are the pods that are about to come, and what they have to wait for.
	follows map[types.UID][]<-chan struct{}
	running sync.WaitGroup
	left    chan struct{} // closed and renewed when a worker is gone
	drained bool          // no pod is to follow another
	ended   bool          // no worker is to begin
}

// New makes the pool that fills the table; it starts nothing. A table has one pool.
func New(table *Table, deps Deps) (*Pool, error) {
	if err := require.Set("new worker pool", map[string]any{
		"Table": table, "NewSteps": deps.NewSteps, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	return &Pool{Table: table, deps: deps, follows: map[types.UID][]<-chan struct{}{}, left: make(chan struct{})}, nil
}

// Run lets workers work until ctx ends, and returns when all have put down their tools.
// What is handed to the pool before Run waits for it.
func (p *Pool) Run(ctx context.Context) error {
	p.mu.Lock()
	p.ctx = ctx
	for _, w := range p.workers {
		p.start(w)
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.running.Wait()
	return nil
}

// start runs a worker in a goroutine of its own. Called under the lock.
func (p *Pool) start(w *worker) {
	if p.ctx == nil || p.ended {
		return
	}
	ctx := p.ctx
	p.running.Go(func() {
		w.run(ctx)
		if ctx.Err() == nil {
			p.forget(w)
		}
	})
}

// forget drops a worker whose pod is gone, and begins with the one that waited for that.
func (p *Pool) forget(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.workers, w.ref.UID)
	w.mu.Lock()
	next := w.next
	w.mu.Unlock()
	if next != nil && !p.drained {
		meter.With(p.deps.Meters.Restarted, next.change.Pod)
		p.handle(next.change, next.failure)
	}
	close(p.left)
	p.left = make(chan struct{})
}

// Handle takes one step in what is wanted. A failure ends the pod before it begins:
// admission refused it.
func (p *Pool) Handle(c pod.Change, failure *pod.Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handle(c, failure)
}

func (p *Pool) handle(c pod.Change, failure *pod.Failure) {
	w, known := p.workers[c.Pod.UID]
	if known && w.postpone(c, failure) {
		return
	}
	if !known {
		w = p.add(c.Pod)
		defer p.start(w)
	}
	w.set(func() bool {
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
		}
		return false
	})
}

// postpone keeps a change for later where the pod was already given up: what was told to
// stop stops, and starts anew after that. A static pod whose file is taken away and put
// back comes here, for its UID follows from its content.
func (w *worker) postpone(c pod.Change, failure *pod.Failure) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.work.Unwanted {
		return false
	}
	w.next = &wish{c, failure}
	if c.Op == pod.Remove {
		w.next = nil
	}
	return true
}

// stop turns a pod towards its end, or hurries it there. It reports whether the running
// step has lost its purpose. Called under the worker's lock.
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
		// Finish again for what has changed: the deletion of its API object, or its removal.
		w.stage = Finishing
	}
	return false
}

// beginStop settles how long the pod has: from now on that can only become less.
func (w *worker) beginStop(grace *int64) {
	w.stage, w.work.Grace = Stopping, pod.GracePeriod(w.work.Pod, grace)
}

// Evict ends a running pod with the given failure within the given grace.
func (p *Pool) Evict(uid types.UID, failure pod.Failure, grace *int64) (found bool) {
	p.mu.Lock()
	w, found := p.workers[uid]
	p.mu.Unlock()
	failure.Evicted = true
	if found {
		w.set(func() bool {
			if w.work.Failure == nil && w.stage == Syncing {
				w.work.Failure = &failure
			}
			return w.stop(grace)
		})
	}
	return found
}

// Finished is closed when the pod has given back what it held: nothing of it runs, and its
// volumes and its cgroup are gone. found is false for a pod without a worker.
func (p *Pool) Finished(uid types.UID) (finished <-chan struct{}, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, found := p.workers[uid]
	if !found {
		return nil, false
	}
	return w.finished, true
}

// Follow has a pod that is about to be handed to the pool begin only when nothing runs any
// more of these others, which end to make room for it. One that runs already is to grow,
// which need not wait: its bounds are wider then, and filled when there is room.
func (p *Pool) Follow(uid types.UID, others []types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range others {
		if w, found := p.workers[other]; found {
			w.mu.Lock()
			w.yields = true
			w.mu.Unlock()
			if _, runs := p.workers[uid]; !runs {
				p.follows[uid] = append(p.follows[uid], w.quiet)
			}
		}
	}
}

// Orphan takes a pod that the runtime has and no source wants: it is stopped and removed.
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

// add makes the worker of a new pod. A static pod waits for the last one of its name: its
// ports and host paths are the same. Called under the lock.
func (p *Pool) add(of *v1.Pod) *worker {
	w := &worker{
		ref:   pod.RefOf(of),
		deps:  p.deps,
		steps: p.deps.NewSteps(),
		wake:  notify.New(),
		quiet: make(chan struct{}),
		gone:  make(chan struct{}),

		finished: make(chan struct{}),
		work:     pod.Work{Pod: of},
	}
	w.hold = p.follows[of.UID]
	delete(p.follows, of.UID)
	if pod.IsStatic(of) {
		if other := p.named(w.ref.FullName()); other != nil {
			w.hold = append(w.hold, other.gone)
		}
	}
	p.workers[of.UID] = w
	return w
}

// Wake asks a pod's worker to look again: something was observed of it.
func (p *Pool) Wake(uid types.UID) {
	p.mu.Lock()
	w := p.workers[uid]
	p.mu.Unlock()
	if w == nil {
		return
	}
	w.set(func() bool {
		if w.stage == Ended { // a container that came late is stopped like the others
			w.stage = Stopping
		}
		return false
	})
}

// ObjectChanged has a pod try its containers again at once where they wait for a ConfigMap
// or a Secret: one that the pod uses has changed.
func (p *Pool) ObjectChanged(uid types.UID) {
	p.mu.Lock()
	w := p.workers[uid]
	p.mu.Unlock()
	if w != nil {
		w.objectChanged()
	}
}

// Retry has steps that failed be tried again at once: what they lacked, such as the API
// server, may be there.
func (p *Pool) Retry() {
	p.mu.Lock()
	workers := slices.Collect(maps.Values(p.workers))
	p.mu.Unlock()
	for _, w := range workers {
		w.retry()
	}
}

// Drain stops and removes every pod, and returns when none is left or ctx ends.
func (p *Pool) Drain(ctx context.Context) error {
	for {
		p.mu.Lock()
		p.drained = true
		workers, left := slices.Collect(maps.Values(p.workers)), p.left
		p.mu.Unlock()
		if len(workers) == 0 {
			return nil
		}
		for _, w := range workers {
			w.set(func() bool {
				if w.work.Unwanted {
					return false
				}
				w.work.Unwanted = true
				return w.stop(nil)
			})
		}
		select {
		case <-left:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
