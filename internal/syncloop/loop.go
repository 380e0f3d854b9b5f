package syncloop

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/klogfmt"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Desired has the desired pods of all sources.
type Desired interface {
	Apply(pod.Snapshot) []pod.Change
	// Ready reports whether every source has sent a snapshot; until then a pod that is not desired
	// may just not have been read yet.
	Ready() bool
	Get(uid types.UID) (*v1.Pod, bool)
}

// Workers act on pods.
type Workers interface {
	Handle(pod.Change, *pod.Failure)
	Wake(types.UID)
	Orphan(pod.Ref)
	Known(types.UID) bool
}

// Observer has the observed pods.
type Observer interface {
	// Synced is closed after the first relist.
	Synced() <-chan struct{}
	// Changes yields pods whose observed state has changed.
	Changes() <-chan types.UID
	Get(types.UID) (pod.Observed, bool)
	List() []pod.Observed
}

// Admission decides which pods run, and with which resources. It passes each decision to handle before it
// makes the next.
type Admission interface {
	// Admit defers changes that need the Node to be read. When NodeRead yields the Node, Resume
	// decides on them and returns them.
	Admit(changes []pod.Change, handle func(pod.Change, *pod.Failure))
	NodeRead() <-chan *v1.Node
	Resume(node *v1.Node, handle func(pod.Change, *pod.Failure)) []pod.Change
	// RetryAfter retries deferred resizes after these changes, RetryPeriodic periodically.
	RetryAfter(changes []pod.Change, handle func(pod.Change, *pod.Failure))
	RetryPeriodic(handle func(pod.Change, *pod.Failure))
}

// Deps are the dependencies of a Loop.
type Deps struct {
	Snapshots <-chan pod.Snapshot
	Desired   Desired
	Observer  Observer
	Workers   Workers
	Admission Admission
	// Probed yields pods with a changed probe result; may be nil.
	Probed <-chan types.UID
	// OnChange is called for each change before it is handled; may be nil.
	OnChange func(pod.Change)
	// OnRelist is called when a source has listed its pods, before any change is handled; may be
	// nil.
	OnRelist func()
	// OnHandled is called after each change that was passed to a worker; may be nil.
	OnHandled func()
	// Housekeep removes orphaned directories, cgroups and mirrors. The loop calls it only after every
	// source has sent a snapshot. It must not block.
	Housekeep func(context.Context)
	Clock     clock.WithTicker
	Log       *slog.Logger
}

// housekeepingPeriod can be long: housekeeping is a safety net, workers remove what belongs to their pods.
const housekeepingPeriod = 60 * time.Second

// Loop is the sync loop.
type Loop struct {
	deps  Deps
	ready bool // every source has sent a snapshot
	// seen is the time of the last iteration. It keeps its monotonic reading: a step of the wall clock
	// is no stall.
	seen atomic.Pointer[time.Time]
}

// New validates and starts nothing.
func New(deps Deps) (*Loop, error) {
	if err := require.Set("new sync loop", map[string]any{
		"Snapshots": deps.Snapshots, "Desired": deps.Desired, "Observer": deps.Observer, "Workers": deps.Workers,
		"Admission": deps.Admission, "Housekeep": deps.Housekeep, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	return &Loop{deps: deps}, nil
}

// Run handles events until ctx ends. It first waits for the first relist: without it a pod whose
// containers already run would be started twice.
func (l *Loop) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.deps.Observer.Synced():
	}
	tick := l.deps.Clock.NewTicker(housekeepingPeriod)
	defer tick.Stop()
	for {
		now := l.deps.Clock.Now()
		l.seen.Store(&now)
		select {
		case <-ctx.Done():
			return nil
		case snapshot := <-l.deps.Snapshots:
			l.apply(ctx, snapshot)
		case uid := <-l.deps.Observer.Changes():
			l.observed(uid)
		case uid := <-l.deps.Probed:
			l.deps.Workers.Wake(uid)
		case node := <-l.deps.Admission.NodeRead():
			l.retryResizes(l.deps.Admission.Resume(node, l.handle))
		case <-tick.C():
			l.housekeep(ctx)
		}
	}
}

// Healthy returns an error if the loop is stalled, for healthz.
func (l *Loop) Healthy() error {
	seen := l.seen.Load()
	if seen == nil {
		return nil // it waits for the runtime, which is part of the node's readiness
	}
	if stalled := l.deps.Clock.Since(*seen); stalled > 2*housekeepingPeriod {
		return fmt.Errorf("sync loop stalled for %s", stalled.Round(time.Second))
	}
	return nil
}

// apply applies a snapshot and passes its changes to admission.
func (l *Loop) apply(ctx context.Context, s pod.Snapshot) {
	changes := l.deps.Desired.Apply(s)
	if s.Listed && l.deps.OnRelist != nil {
		l.deps.OnRelist()
	}
	l.logChanges(s.Source, changes)
	for _, c := range changes {
		meter.With(l.deps.OnChange, c)
	}
	l.deps.Admission.Admit(changes, l.handle)
	l.retryResizes(changes)
	if !l.ready && l.deps.Desired.Ready() {
		l.ready = true
		l.housekeep(ctx)
	}
}

// retryResizes retries deferred resizes after changes. Before every source has sent a snapshot, pods that
// use resources may not be known yet.
func (l *Loop) retryResizes(changes []pod.Change) {
	if l.ready {
		l.deps.Admission.RetryAfter(changes, l.handle)
	}
}

// handle passes a decided change to the pod's worker.
func (l *Loop) handle(c pod.Change, failure *pod.Failure) {
	l.stopPredecessor(c)
	l.deps.Workers.Handle(c, failure)
	if l.deps.OnHandled != nil {
		l.deps.OnHandled()
	}
}

// observed wakes the pod's worker, or handles the pod as an orphan.
func (l *Loop) observed(uid types.UID) {
	if l.deps.Workers.Known(uid) {
		l.deps.Workers.Wake(uid)
		return
	}
	if o, ok := l.deps.Observer.Get(uid); ok {
		l.orphan(o)
	}
}

// stopPredecessor stops an earlier version of a static pod that changed while no kubelet ran: the new
// version waits for it. It does not depend on other sources, as only the file has the name.
func (l *Loop) stopPredecessor(c pod.Change) {
	if c.Op != pod.Add || !pod.IsStatic(c.Pod) {
		return
	}
	for _, o := range l.deps.Observer.List() {
		if o.FullName() == pod.FullName(c.Pod) {
			l.stopOrphan(o)
		}
	}
}

// orphan stops a pod that the runtime has and no source, once every source has sent a snapshot.
func (l *Loop) orphan(o pod.Observed) {
	if l.ready {
		l.stopOrphan(o)
	}
}

func (l *Loop) stopOrphan(o pod.Observed) {
	if l.deps.Workers.Known(o.UID) || len(o.Sandboxes)+len(o.Containers) == 0 {
		return
	}
	if _, desired := l.deps.Desired.Get(o.UID); !desired {
		l.deps.Log.Log(context.Background(), klogfmt.V2, "sync loop: stopping orphaned pod", o.Attr())
		l.deps.Workers.Orphan(o.Ref)
	}
}

func (l *Loop) housekeep(ctx context.Context) {
	if !l.ready {
		return
	}
	for _, o := range l.deps.Observer.List() {
		l.orphan(o)
	}
	l.deps.Admission.RetryPeriodic(l.handle)
	l.deps.Housekeep(ctx)
}
