package observe

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/contain"
	"swiftlet/internal/instant"
	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/queue"
	"swiftlet/internal/require"
)

// Runtime reads pods from the container runtime. cri.Client implements it.
type Runtime interface {
	ListPodSandboxes(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error)
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
	PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error)
	ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error)
	// Events calls handle for each event until the stream ends; it never returns nil.
	Events(ctx context.Context, handle func(*runtimeapi.ContainerEventResponse)) error
}

// Config has periods and timeouts; zero values mean the defaults.
type Config struct {
	// RelistPeriod is the time between relists while there is an event stream. Default 60 s.
	RelistPeriod time.Duration
	// PollPeriod is that time while there is none. Default 1 s.
	PollPeriod time.Duration
	// DownAfter is how long relists may fail before Healthy returns an error, so that a restart
	// of the runtime does not make the node NotReady. Default 3 s.
	DownAfter time.Duration
	// StaleAfter is the age of the last relist at which Healthy returns an error. Default 3 min.
	StaleAfter time.Duration
	// FirstRelistTimeout bounds the wait for the pods of the first relist. Default 10 s.
	FirstRelistTimeout time.Duration
}

// Deps are the Observer's dependencies.
type Deps struct {
	Runtime Runtime
	// ReadMessage reads an exited container's termination message. It is called once per
	// container and must not block for long. It may be nil.
	ReadMessage func(ref pod.Ref, c *pod.Container) string
	// HealthChanged is called when the result of Healthy may have changed. It must not block, and
	// may be nil.
	HealthChanged func()
	// Events and Node, the object of events about the node, may both be nil.
	Events pod.Events
	Node   func() *v1.ObjectReference
	Panics contain.Reporter
	Meters Meters
	Clock  clock.Clock
	Log    *slog.Logger
}

// Meters measure relists and events; each may be nil.
type Meters struct {
	// Relist takes the duration of a relist, Interval the time between the starts of two.
	Relist, Interval meter.Timing
	// PodRead takes the duration of reading one pod.
	PodRead meter.Timing
	// StreamErrors counts the event streams that failed or ended.
	StreamErrors meter.Count
	// EventLag takes the age of an event when it arrives.
	EventLag meter.Timing
}

// Observer holds the observed state of all pods. Its methods are safe for concurrent use.
type Observer struct {
	cfg  Config
	deps Deps

	changes *queue.Unique[types.UID] // never blocks: the runtime waits for its subscribers
	synced  chan struct{}
	// relistNow triggers a relist.
	relistNow notify.Signal
	// readers are the goroutines that read single pods; Run waits for them.
	readers sync.WaitGroup
	health  health
	// clockSteps belongs to the goroutine that handles events.
	clockSteps instant.Steps

	mu   sync.Mutex
	pods map[types.UID]*record
	// ignoreBefore is the start of the last relist: events from before it about pods without a
	// record are stale.
	ignoreBefore time.Time
	// removed are the IDs of removed objects, with the time when that was noticed.
	removed map[string]time.Time
	// messages are the termination messages by container ID, read on first use.
	messages map[string]func() string
	// reading are the pods being read; true means to read again afterwards.
	reading map[types.UID]bool
	// unread are the pods that are listed and not read yet.
	unread         map[types.UID]bool
	streaming      bool
	justSubscribed bool
}

// New validates its arguments and starts nothing.
func New(cfg Config, deps Deps) (*Observer, error) {
	if err := require.Set("new observer", map[string]any{"Runtime": deps.Runtime, "Clock": deps.Clock, "Log": deps.Log}); err != nil {
		return nil, err
	}
	for value, fallback := range map[*time.Duration]time.Duration{
		&cfg.RelistPeriod:       time.Minute,
		&cfg.PollPeriod:         time.Second,
		&cfg.DownAfter:          3 * time.Second,
		&cfg.StaleAfter:         3 * time.Minute,
		&cfg.FirstRelistTimeout: 10 * time.Second,
	} {
		if *value < 0 {
			return nil, errors.New("new observer: a duration is negative")
		}
		if *value == 0 {
			*value = fallback
		}
	}
	if deps.ReadMessage == nil {
		deps.ReadMessage = func(pod.Ref, *pod.Container) string { return "" }
	}
	if deps.HealthChanged == nil {
		deps.HealthChanged = func() {}
	}
	return &Observer{
		cfg: cfg, deps: deps,
		changes:   queue.NewUnique[types.UID](),
		synced:    make(chan struct{}),
		relistNow: notify.New(),
		pods:      map[types.UID]*record{},
		removed:   map[string]time.Time{},
		messages:  map[string]func() string{},
		reading:   map[types.UID]bool{},
		unread:    map[types.UID]bool{},
	}, nil
}

// Run observes until ctx is done.
func (o *Observer) Run(ctx context.Context) error {
	o.mu.Lock()
	o.ignoreBefore = o.deps.Clock.Now()
	o.mu.Unlock()
	var parts sync.WaitGroup
	parts.Go(func() { o.changes.Run(ctx) })
	parts.Go(func() { o.streamEvents(ctx) })
	o.relistLoop(ctx)
	parts.Wait()
	o.readers.Wait()
	return nil
}

// Get returns the observed state of a pod; false if the runtime has nothing of it. The value is
// shared and read-only.
func (o *Observer) Get(uid types.UID) (pod.Observed, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, ok := o.pods[uid]
	if !ok {
		return pod.Observed{}, false
	}
	return r.view, true
}

// Unread reports whether the pod is listed by the runtime and not read yet: then Get is
// incomplete, and the pod's worker must call Refresh before it acts.
func (o *Observer) Unread(uid types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.unread[uid]
}

// All yields the observed state of all pods, in no order. The loop must not call the Observer.
func (o *Observer) All(yield func(pod.Observed) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.pods {
		if !yield(r.view) {
			return
		}
	}
}

// List returns the observed state of all pods, in no order.
func (o *Observer) List() []pod.Observed {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]pod.Observed, 0, len(o.pods))
	for _, r := range o.pods {
		all = append(all, r.view)
	}
	return all
}

// Changes yields the pods whose observed state has changed, while Run runs. A pod is queued
// once, however often it changes; Get returns its newest state.
func (o *Observer) Changes() <-chan types.UID { return o.changes.C() }

// Synced is closed after the first relist: only then does false from Get mean that the runtime
// has nothing of the pod, unless the pod is Unread.
func (o *Observer) Synced() <-chan struct{} { return o.synced }
