package status

import (
	"context"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"swiftlet/internal/backoff"
	"swiftlet/internal/contain"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Config is the configuration of a Publisher. The zero value is usable.
type Config struct {
	// Workers is how many statuses are written at the same time; 8 if zero.
	Workers int
	// MinBackoff and MaxBackoff limit the delay after a failed write; 100 ms and 10 s if zero.
	MinBackoff, MaxBackoff time.Duration
}

// Client sends requests to the API server. Its errors are those of apimachinery.
type Client interface {
	// PatchStatus applies a strategic merge patch to the pod's status and returns the new resource
	// version.
	PatchStatus(ctx context.Context, namespace, name string, patch []byte) (resourceVersion string, err error)
	// DeletePod deletes the pod without a grace period if it has this UID.
	DeletePod(ctx context.Context, namespace, name string, uid types.UID) error
}

// Deps are the dependencies of a Publisher.
type Deps struct {
	// Client is nil without a control plane: then statuses are only kept in memory.
	Client Client
	// Mirror returns the mirror of a static pod, nil if there is none.
	Mirror func(static *v1.Pod) *v1.Pod
	Clock  clock.WithDelayedExecution
	// Jitter returns a number in [0, 1), as rand.Float64 does.
	Jitter func() float64
	Panics contain.Reporter
	Meters Meters
	Log    *slog.Logger
}

// Meters are the metrics of a Publisher; each may be nil.
type Meters struct {
	// Changed is called for each change of a pod's status. It must not keep or change either.
	Changed func(p *v1.Pod, before, after *v1.PodStatus)
	// Written measures the time from a change until the API server has it.
	Written meter.Timing
}

// Publisher keeps the latest status of each pod and writes it to the API server. All its methods are
// safe for concurrent use, and only Run sends requests.
type Publisher struct {
	cfg     Config
	client  Client
	mirror  func(*v1.Pod) *v1.Pod
	clock   clock.WithDelayedExecution
	retries backoff.Backoff
	panics  contain.Reporter
	meters  Meters
	log     *slog.Logger
	// queue passes a pod to one worker at a time, so its writes are in order.
	queue workqueue.TypedInterface[types.UID]

	mu          sync.Mutex
	pods        map[types.UID]*entry
	subscribers []func(types.UID)
	waiters     []chan struct{} // of Written
}

// New validates and starts nothing. Statuses that are set before Run are written by Run.
func New(cfg Config, deps Deps) (*Publisher, error) {
	if err := require.Set("new status publisher", map[string]any{
		"Clock": deps.Clock, "Log": deps.Log, "Mirror": deps.Mirror, "Jitter": deps.Jitter,
	}); err != nil {
		return nil, err
	}
	if cfg.Workers == 0 {
		cfg.Workers = 8
	}
	if cfg.MinBackoff == 0 {
		cfg.MinBackoff = 100 * time.Millisecond
	}
	if cfg.MaxBackoff == 0 {
		cfg.MaxBackoff = 10 * time.Second
	}
	return &Publisher{
		cfg:    cfg,
		client: deps.Client,
		mirror: deps.Mirror,
		clock:  deps.Clock,
		// Half of each delay is random: it spreads pods that failed together.
		retries: backoff.Backoff{First: cfg.MinBackoff / 2, Longest: cfg.MaxBackoff / 2, Spread: 1, Random: deps.Jitter},
		panics:  deps.Panics,
		meters:  deps.Meters,
		log:     deps.Log,
		queue:   workqueue.NewTyped[types.UID](),
		pods:    map[types.UID]*entry{},
	}, nil
}

// entry is the state of one pod. Publisher.mu guards its fields.
type entry struct {
	pod    *v1.Pod      // its latest version
	status v1.PodStatus // complete, normalized
	// finished: the pod has released its resources, so it may be deleted from the API server.
	finished bool

	// target is the UID of the API object: that of the pod or of its mirror.
	target types.UID
	dirty  bool      // the API server does not have status
	since  time.Time // when it became dirty
	// writing: a request with the status is in progress.
	writing bool
	gone    bool // target does not exist
	// resourceVersion is that of the last write; older events of the watch are stale.
	resourceVersion string

	failures int
	retry    clock.Timer
	outage   bool // the last failure was one of the API server, not of this pod
}

// Set records the pod's status and publishes it if it changed. It returns the published status, with
// transition times and conditions of other components.
func (p *Publisher) Set(target *v1.Pod, s v1.PodStatus) v1.PodStatus {
	status, changed := p.set(target, s)
	p.notify(target.UID, changed)
	return status
}

func (p *Publisher) set(target *v1.Pod, s v1.PodStatus) (published v1.PodStatus, changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock() // also if the status of this pod causes a panic
	e, changed := p.record(target, *s.DeepCopy())
	return e.status, changed
}

// Get returns the latest status of a pod by its UID, for a static pod by its own UID. The caller must
// not change it.
func (p *Publisher) Get(uid types.UID) (v1.PodStatus, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.pods[uid]
	if !ok {
		return v1.PodStatus{}, false
	}
	return e.status, true
}

// Published returns the status that the API server has of a pod, of a static pod that of its mirror, unless
// that has ended. known is false while the mirror is not known yet. The caller must not change the status.
func (p *Publisher) Published(target *v1.Pod) (status v1.PodStatus, known bool) {
	object := p.apiObject(target)
	if object != nil && !isEndedMirror(object) {
		return object.Status, true
	}
	return target.Status, object != nil || p.client == nil
}

// isEndedMirror reports whether the object is a mirror with a terminal phase. That phase does not end the
// static pod of an agent that has just started: its containers decide whether it runs again.
func isEndedMirror(object *v1.Pod) bool {
	return pod.IsMirror(object) && pod.IsTerminal(object.Status.Phase)
}

// Finish marks a pod that has released its resources. It publishes the final status. If the pod is being
// deleted, the publisher then deletes it from the API server.
func (p *Publisher) Finish(target *v1.Pod) {
	p.notify(target.UID, p.finish(target))
}

func (p *Publisher) finish(target *v1.Pod) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := target.Status
	if e, ok := p.pods[target.UID]; ok {
		last = e.status
	}
	e, changed := p.record(target, finalStatus(target, last))
	if !e.finished {
		e.finished = true
		p.enqueueIfNeeded(e)
	}
	return changed
}

// Reconcile publishes the status again if the API server has another one. It is called when the pod, or
// the mirror of a static pod, has changed in the API server.
func (p *Publisher) Reconcile(target *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reconcile(target)
}

func (p *Publisher) reconcile(target *v1.Pod) {
	e, ok := p.pods[target.UID]
	if !ok {
		return
	}
	e.pod = target
	object := p.apiObject(target)
	if object == nil || e.adopt(object) {
		return
	}
	if pod.IsTerminal(target.Status.Phase) && !pod.IsTerminal(e.status.Phase) {
		return // another component ended the pod: its worker stops it and publishes this phase
	}
	if e.target == object.UID && !e.dirty && isStale(object.ResourceVersion, e.resourceVersion) {
		return
	}
	if equality.Semantic.DeepEqual(e.status, object.Status) {
		e.status = object.Status // a settled pod has one status; no one changes it
	} else if !sameStatus(normalize(target, object.Status), e.status) {
		e.markDirty(p.clock.Now())
	}
	p.enqueueIfNeeded(e)
}

// Relisted reconciles all pods after the API server was listed. Resource versions of the list may be
// lower than those of earlier writes, if etcd was restored from a backup; the list is still the current
// state.
func (p *Publisher) Relisted(pods []*v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.pods {
		e.resourceVersion, e.gone = "", false
	}
	for _, target := range pods {
		p.reconcile(target)
	}
}

// Forget drops the state of a pod. It does not cancel a write in progress.
func (p *Publisher) Forget(uid types.UID) {
	p.mu.Lock()
	e, ok := p.pods[uid]
	if ok {
		delete(p.pods, uid)
		e.stopRetry()
		p.wakeWaiters()
	}
	p.mu.Unlock()
	p.notify(uid, ok)
}

// Subscribe registers f to be called after each change of any status. f must not block.
func (p *Publisher) Subscribe(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscribers = append(p.subscribers, func(types.UID) { f() })
}

// SubscribePods is Subscribe with the UID of the pod.
func (p *Publisher) SubscribePods(f func(types.UID)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscribers = append(p.subscribers, f)
}

func (p *Publisher) notify(uid types.UID, changed bool) {
	if !changed {
		return
	}
	p.mu.Lock()
	all := p.subscribers
	p.mu.Unlock()
	for _, f := range all {
		f(uid)
	}
}

// record merges s, which must not be used elsewhere, into the pod's entry and enqueues it if there is something to write.
func (p *Publisher) record(target *v1.Pod, s v1.PodStatus) (e *entry, changed bool) {
	object := p.apiObject(target)
	e, known := p.pods[target.UID]
	if !known {
		e = &entry{status: target.Status}
		if object != nil {
			e.target = object.UID
			if !isEndedMirror(object) {
				e.status = *object.Status.DeepCopy()
			}
		}
		p.pods[target.UID] = e
	}
	e.pod = target
	if known && object != nil && e.adopt(object) {
		return e, true
	}
	merged := merge(target, object, e.status, s, p.clock.Now())
	if !equality.Semantic.DeepEqual(e.status, merged) {
		changed = !sameStatus(normalize(target, e.status), merged)
		if changed && p.meters.Changed != nil {
			p.meters.Changed(target, &e.status, &merged)
		}
		e.status = merged
	}
	if changed || (!known && (object == nil || isEndedMirror(object))) {
		e.markDirty(p.clock.Now())
	}
	p.enqueueIfNeeded(e)
	return e, changed || !known
}

// apiObject returns the pod's object in the API server: the pod itself or its mirror. The mirror of an
// earlier pod of that name is not that of this one: it has another status, perhaps with a terminal phase.
func (p *Publisher) apiObject(target *v1.Pod) *v1.Pod {
	if !pod.IsStatic(target) {
		return target
	}
	if mirror := p.mirror(target); mirror != nil && pod.IsMirrorOf(mirror, target) {
		return mirror
	}
	return nil
}

// markDirty marks the status as not written yet.
func (e *entry) markDirty(now time.Time) {
	if !e.dirty {
		e.dirty, e.since = true, now
	}
}

// mayDelete reports whether the pod is to be deleted from the API server. Mirrors are deleted
// elsewhere.
func (e *entry) mayDelete() bool {
	return e.finished && e.pod.DeletionTimestamp != nil && !pod.IsStatic(e.pod)
}

func (p *Publisher) enqueueIfNeeded(e *entry) {
	if p.client == nil || !e.dirty && !e.mayDelete() {
		return
	}
	e.stopRetry()
	if wait := p.startDelayOf(e); wait > 0 {
		p.enqueueAfter(e, wait)
		return
	}
	p.queue.Add(e.pod.UID)
}

// enqueueAfter enqueues the pod later, unless it is enqueued before.
func (p *Publisher) enqueueAfter(e *entry, wait time.Duration) {
	uid := e.pod.UID
	e.retry = p.clock.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pods[uid] == e {
			p.enqueueIfNeeded(e)
		}
	})
}

func (e *entry) stopRetry() {
	if e.retry != nil {
		e.retry.Stop()
		e.retry = nil
	}
}
