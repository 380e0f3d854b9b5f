package syncloop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
)

// Desired knows what the sources want.
type Desired interface {
	Apply(pod.Snapshot) []pod.Change
	// Ready reports whether every source has spoken; until then a pod that nobody wants
	// may only not have been asked for yet.
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

// Observer knows what the runtime holds.
type Observer interface {
	// Synced is closed once the runtime was read for the first time.
	Synced() <-chan struct{}
	// Changes yields pods of which something new was seen.
	Changes() <-chan types.UID
	Get(types.UID) (pod.Observed, bool)
	List() []pod.Observed
}

// Admission decides which pods run, and with which resources. It passes what is decided to
// handle, in order, each before it decides on the next.
type Admission interface {
	// Admit leaves out changes that it takes a read of the Node to decide on. When NodeRead
	// has yielded that, Resume decides on them and returns them.
	Admit(changes []pod.Change, handle func(pod.Change, *pod.Failure))
	NodeRead() <-chan *v1.Node
	Resume(node *v1.Node, handle func(pod.Change, *pod.Failure)) []pod.Change
	// RetryAfter tries deferred resizes again after these changes, RetryPeriodic because time
	// has passed.
	RetryAfter(changes []pod.Change, handle func(pod.Change, *pod.Failure))
	RetryPeriodic(handle func(pod.Change, *pod.Failure))
}

// Deps is what the loop connects.
type Deps struct {
	Snapshots <-chan pod.Snapshot
	Desired   Desired
	Observer  Observer
	Workers   Workers
	Admission Admission
	// Probed yields pods of which a probe changed its mind; may be nil.
	Probed <-chan types.UID
	// Seen is told of each change in what is wanted, before it is acted on; may be nil.
	Seen func(pod.Change)
	// Relisted is called when a source has listed its pods as a whole, before any change is
	// acted on; may be nil.
	Relisted func()
	// Handled is called after each change that was passed to a worker; may be nil.
	Handled func()
	// Housekeep removes what no pod owns (folders, cgroups, mirrors). It is called from the
	// loop only once every source has spoken, and must not block it.
	Housekeep func(context.Context)
	Clock     clock.WithTicker
	Log       *slog.Logger
}

// housekeeping is a safety net: what is left behind in the ordinary way is removed at once.
const housekeeping = 60 * time.Second

// Loop is the select.
type Loop struct {
	deps  Deps
	ready bool         // every source has spoken
	seen  atomic.Int64 // when the loop last came round, Unix nanoseconds
}

// New validates and starts nothing.
func New(deps Deps) (*Loop, error) {
	if deps.Snapshots == nil || deps.Desired == nil || deps.Observer == nil || deps.Workers == nil || deps.Admission == nil {
		return nil, errors.New("syncloop: snapshots, desired, observer, workers and admission are needed")
	}
	if deps.Clock == nil || deps.Log == nil || deps.Housekeep == nil {
		return nil, errors.New("syncloop: clock, log and housekeep are needed")
	}
	return &Loop{deps: deps}, nil
}

// Run handles events until ctx ends. It waits for the first look at the runtime: to act
// on a pod without knowing what already runs of it would start it twice.
func (l *Loop) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.deps.Observer.Synced():
	}
	tick := l.deps.Clock.NewTicker(housekeeping)
	defer tick.Stop()
	for {
		l.seen.Store(l.deps.Clock.Now().UnixNano())
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

// Healthy reports whether the loop came round lately; healthz asks.
func (l *Loop) Healthy() error {
	seen := l.seen.Load()
	if seen == 0 {
		return nil // waiting for the runtime: node readiness tells of that
	}
	if stalled := l.deps.Clock.Since(time.Unix(0, seen)); stalled > 2*housekeeping {
		return fmt.Errorf("sync loop stalled for %s", stalled.Round(time.Second))
	}
	return nil
}

// apply hands on what a source now wants.
func (l *Loop) apply(ctx context.Context, s pod.Snapshot) {
	changes := l.deps.Desired.Apply(s)
	if s.Listed && l.deps.Relisted != nil {
		l.deps.Relisted()
	}
	for _, c := range changes {
		l.deps.Log.Info("pod wanted", "op", c.Op.String(), "pod", pod.RefOf(c.Pod).String(), "source", s.Source)
		meter.With(l.deps.Seen, c)
	}
	l.deps.Admission.Admit(changes, l.handle)
	l.retryResizes(changes)
	if !l.ready && l.deps.Desired.Ready() {
		l.ready = true
		l.housekeep(ctx)
	}
}

// retryResizes has deferred resizes tried again after changes. Before every source has
// spoken, pods that hold resources may not be known yet.
func (l *Loop) retryResizes(changes []pod.Change) {
	if l.ready {
		l.deps.Admission.RetryAfter(changes, l.handle)
	}
}

// handle passes a decided change to the pod's worker.
func (l *Loop) handle(c pod.Change, failure *pod.Failure) {
	l.displace(c)
	l.deps.Workers.Handle(c, failure)
	if l.deps.Handled != nil {
		l.deps.Handled()
	}
}

// observed wakes the pod's worker, or finds that nobody wants the pod.
func (l *Loop) observed(uid types.UID) {
	if l.deps.Workers.Known(uid) {
		l.deps.Workers.Wake(uid)
		return
	}
	if o, ok := l.deps.Observer.Get(uid); ok {
		l.orphan(o)
	}
}

// displace ends an earlier form of a static pod whose change no agent saw: the new one is
// to wait for it. That needs no other source to have spoken, for the name is the file's.
func (l *Loop) displace(c pod.Change) {
	if c.Op != pod.Add || !pod.IsStatic(c.Pod) {
		return
	}
	for _, o := range l.deps.Observer.List() {
		if o.FullName() == pod.FullName(c.Pod) {
			l.abandon(o)
		}
	}
}

// orphan hands over a pod that the runtime has and nobody wants, once that is certain.
func (l *Loop) orphan(o pod.Observed) {
	if l.ready {
		l.abandon(o)
	}
}

func (l *Loop) abandon(o pod.Observed) {
	if l.deps.Workers.Known(o.UID) || len(o.Sandboxes)+len(o.Containers) == 0 {
		return
	}
	if _, wanted := l.deps.Desired.Get(o.UID); !wanted {
		l.deps.Log.Info("stopping a pod that nobody wants", "pod", o.Ref.String())
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
