package status

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"swiftlet/internal/backoff"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
)

// Config bounds the publisher. The zero value is usable.
type Config struct {
	// Workers is how many pods are written at once; 8 where it is 0.
	Workers int
	// MinBackoff and MaxBackoff bound the wait after a failed write of a pod;
	// 100 ms and 10 s where they are 0.
	MinBackoff, MaxBackoff time.Duration
}

// Client is what is asked of the API server. Errors are those of apimachinery.
type Client interface {
	// PatchStatus applies a strategic merge patch to the pod's status and returns the
	// resource version that made.
	PatchStatus(ctx context.Context, namespace, name string, patch []byte) (resourceVersion string, err error)
	// DeletePod deletes the pod at once if it still has this UID.
	DeletePod(ctx context.Context, namespace, name string, uid types.UID) error
}

// Deps are what the publisher needs from outside.
type Deps struct {
	// Client is nil without a control plane: then status is only remembered.
	Client Client
	// Mirror returns the API server's image of a static pod, nil where there is none.
	Mirror func(static *v1.Pod) *v1.Pod
	Clock  clock.WithDelayedExecution
	// Jitter returns a number in [0, 1); math/rand's Float64 will do.
	Jitter func() float64
	Meters Meters
	Log    *slog.Logger
}

// Meters measure the publishing; each may be nil.
type Meters struct {
	// Changed is told of each change of a pod's status. It must not keep or change either.
	Changed func(p *v1.Pod, before, after *v1.PodStatus)
	// Written takes the time from a change to the moment the API server had it.
	Written meter.Timing
}

// Publisher remembers the latest status of each pod and writes it to the API server.
// All its methods are safe for concurrent use and none but Run blocks on the network.
type Publisher struct {
	cfg     Config
	client  Client
	mirror  func(*v1.Pod) *v1.Pod
	clock   clock.WithDelayedExecution
	retries backoff.Backoff
	meters  Meters
	log     *slog.Logger
	// queue gives a pod to one worker at a time, so that its writes keep their order.
	queue workqueue.TypedInterface[types.UID]

	mu          sync.Mutex
	pods        map[types.UID]*entry
	subscribers []func()
	waiters     []chan struct{} // of Written
}

// New starts nothing; status may be set before Run, which then writes it.
func New(cfg Config, deps Deps) (*Publisher, error) {
	if deps.Clock == nil || deps.Log == nil || deps.Mirror == nil || deps.Jitter == nil {
		return nil, errors.New("status: clock, log, mirror look-up and jitter are needed")
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
		meters:  deps.Meters,
		log:     deps.Log,
		queue:   workqueue.NewTyped[types.UID](),
		pods:    map[types.UID]*entry{},
	}, nil
}

// entry is what is known of one pod. Its fields are guarded by Publisher.mu.
type entry struct {
	pod    *v1.Pod      // its form as last passed in
	status v1.PodStatus // complete, normalised
	// finished: nothing of the pod is left on the node, so it may leave the API server.
	finished bool

	// target is the UID that the status was last written to: the pod's or its mirror's.
	target types.UID
	dirty  bool      // the API server does not have status, or still has a pod it may lose
	since  time.Time // when it became dirty
	// writing: a request with the status is on its way.
	writing bool
	gone    bool // target does not exist (any more)
	// resourceVersion is what our last write made; older events of the same watch are stale.
	resourceVersion string

	failures int
	retry    clock.Timer
	outage   bool // the last failure says nothing about this pod, only about the server
}

// Set records p's status and has it published if it changed. It returns the status as it
// will be published, with transition times and conditions of others filled in.
func (p *Publisher) Set(target *v1.Pod, s v1.PodStatus) v1.PodStatus {
	p.mu.Lock()
	e, changed := p.record(target, *s.DeepCopy())
	status := e.status
	p.mu.Unlock()
	p.notify(changed)
	return status
}

// Get returns the latest status of a pod, by its own UID even where it is a static pod.
// It must not be changed.
func (p *Publisher) Get(uid types.UID) (v1.PodStatus, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.pods[uid]
	if !ok {
		return v1.PodStatus{}, false
	}
	return e.status, true
}

// Finish says that nothing of the pod is left on the node. Its final status is published
// and then, if it is to be deleted, it leaves the API server at once.
func (p *Publisher) Finish(target *v1.Pod) {
	p.mu.Lock()
	last := target.Status
	if e, ok := p.pods[target.UID]; ok {
		last = e.status
	}
	e, changed := p.record(target, finalStatus(target, last))
	if !e.finished {
		e.finished = true
		p.enqueueIfDue(e)
	}
	p.mu.Unlock()
	p.notify(changed)
}

// Reconcile compares the API server's idea of the pod with ours, and corrects it. To be
// called when the pod, or the mirror of a static pod, was seen to change.
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
	image := p.imageOf(target)
	if image == nil {
		return
	}
	if e.target == image.UID && !e.dirty && isStale(image.ResourceVersion, e.resourceVersion) {
		return
	}
	if !sameStatus(normalize(target, image.Status), e.status) {
		e.soil(p.clock.Now())
	}
	p.enqueueIfDue(e)
}

// Relisted compares all pods with the list that the API server has just sent. The list is
// what it has now, also where its versions are older than our writes: they go back when
// etcd is restored from a backup.
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

// Forget drops all memory of a pod. A write under way is not called back.
func (p *Publisher) Forget(uid types.UID) {
	p.mu.Lock()
	e, ok := p.pods[uid]
	if ok {
		delete(p.pods, uid)
		e.stopRetry()
		p.wakeWaiters()
	}
	p.mu.Unlock()
	p.notify(ok)
}

// Subscribe has f called after each change of any status. It must not block.
func (p *Publisher) Subscribe(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscribers = append(p.subscribers, f)
}

func (p *Publisher) notify(changed bool) {
	if !changed {
		return
	}
	p.mu.Lock()
	all := p.subscribers
	p.mu.Unlock()
	for _, f := range all {
		f()
	}
}

// record merges s into what is known and queues it where that leaves something to write.
func (p *Publisher) record(target *v1.Pod, s v1.PodStatus) (e *entry, changed bool) {
	image := p.imageOf(target)
	e, known := p.pods[target.UID]
	if !known {
		e = &entry{status: target.Status}
		if image != nil {
			e.status, e.target = *image.Status.DeepCopy(), image.UID
		}
		p.pods[target.UID] = e
	}
	e.pod = target
	merged := merge(target, image, e.status, s, p.clock.Now())
	changed = !sameStatus(normalize(target, e.status), merged)
	if changed && p.meters.Changed != nil {
		p.meters.Changed(target, &e.status, &merged)
	}
	e.status = merged
	if changed || (!known && image == nil) {
		e.soil(p.clock.Now())
	}
	p.enqueueIfDue(e)
	return e, changed || !known
}

// imageOf is the object that shows the pod in the API server.
func (p *Publisher) imageOf(target *v1.Pod) *v1.Pod {
	if pod.IsStatic(target) {
		return p.mirror(target)
	}
	return target
}

// soil notes that the API server lacks something, from now on if it did not before.
func (e *entry) soil(now time.Time) {
	if !e.dirty {
		e.dirty, e.since = true, now
	}
}

// mayLeave reports whether the API server is to be told to drop the pod. A mirror goes
// with its static pod, by another hand.
func (e *entry) mayLeave() bool {
	return e.finished && e.pod.DeletionTimestamp != nil && !pod.IsStatic(e.pod)
}

func (p *Publisher) enqueueIfDue(e *entry) {
	if p.client != nil && (e.dirty || e.mayLeave()) {
		e.stopRetry()
		p.queue.Add(e.pod.UID)
	}
}

func (e *entry) stopRetry() {
	if e.retry != nil {
		e.retry.Stop()
		e.retry = nil
	}
}
