package observe

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/queue"
)

// Runtime is what the observer asks of a container runtime; cri.Client is one.
type Runtime interface {
	ListPodSandboxes(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error)
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
	PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error)
	ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error)
	// Events calls handle for each event until the stream ends; it never returns nil.
	Events(ctx context.Context, handle func(*runtimeapi.ContainerEventResponse)) error
}

// Config is how often and how patiently to look; zero values stand for the defaults.
type Config struct {
	// RelistPeriod is the time between full relists while events flow. Default 60 s.
	RelistPeriod time.Duration
	// PollPeriod is that time while they do not. Default 1 s.
	PollPeriod time.Duration
	// DownAfter is how long the runtime may fail to answer before Healthy says so; it
	// spares the node from turning NotReady when the runtime restarts. Default 3 s.
	DownAfter time.Duration
	// StaleAfter is the age of the last relist at which Healthy gives up. Default 3 min.
	StaleAfter time.Duration
	// FirstWait bounds how long the first relist waits for slow pods. Default 10 s.
	FirstWait time.Duration
}

// Deps are the observer's surroundings. All are needed but ReadMessage.
type Deps struct {
	Runtime Runtime
	// ReadMessage reads an exited container's termination message; it is called once per
	// container and must not block for long. Nil reads none.
	ReadMessage func(ref pod.Ref, c *pod.Container) string
	// Disturbed is called when the runtime seems to go or to come back, for those who care
	// about its health; it must not block. May be nil.
	Disturbed func()
	Meters    Meters
	Clock     clock.Clock
	Log       *slog.Logger
}

// Meters measure the observing; each may be nil.
type Meters struct {
	// Relist takes how long a relist took, Interval the time since the one before it began.
	Relist, Interval meter.Timing
	// PodRead takes how long it took to read one pod.
	PodRead meter.Timing
	// Broken counts the subscriptions to the runtime's events that failed or ended.
	Broken meter.Count
	// EventLag takes the age of an event when it arrives.
	EventLag meter.Timing
}

// Observer holds what was seen. Its methods may be called from any goroutine.
type Observer struct {
	cfg     Config
	runtime Runtime
	read    func(pod.Ref, *pod.Container) string
	disturb func()
	meters  Meters
	clock   clock.Clock
	log     *slog.Logger

	changes *queue.Unique[types.UID] // the runtime waits for the reader of its events
	synced  chan struct{}
	// relistNow asks for a relist; one request waiting is enough.
	relistNow notify.Signal
	// inspections are the goroutines that read single pods; Run waits for them.
	inspections sync.WaitGroup
	health      health

	mu   sync.Mutex
	pods map[types.UID]*record
	// floor is the time before which events tell nothing new of pods not known: a relist
	// that started then has seen all there was.
	floor time.Time
	// gone are the ids that were removed, with the time they were found gone.
	gone map[string]time.Time
	// messages are the termination messages, by container id, read when first asked for.
	messages map[string]func() string
	// inspecting are the pods being read; true asks for another reading afterwards.
	inspecting map[types.UID]bool
	// unread are the pods that were listed and not read yet.
	unread    map[types.UID]bool
	streaming bool
	settling  bool
}

// New makes an observer; Run starts it.
func New(cfg Config, deps Deps) (*Observer, error) {
	if deps.Runtime == nil || deps.Clock == nil || deps.Log == nil {
		return nil, errors.New("new observer: runtime, clock and log are needed")
	}
	for value, standard := range map[*time.Duration]time.Duration{
		&cfg.RelistPeriod: time.Minute,
		&cfg.PollPeriod:   time.Second,
		&cfg.DownAfter:    3 * time.Second,
		&cfg.StaleAfter:   3 * time.Minute,
		&cfg.FirstWait:    10 * time.Second,
	} {
		if *value < 0 {
			return nil, errors.New("new observer: a duration is negative")
		}
		if *value == 0 {
			*value = standard
		}
	}
	read := deps.ReadMessage
	if read == nil {
		read = func(pod.Ref, *pod.Container) string { return "" }
	}
	disturb := deps.Disturbed
	if disturb == nil {
		disturb = func() {}
	}
	return &Observer{
		cfg: cfg, runtime: deps.Runtime, read: read, disturb: disturb, meters: deps.Meters, clock: deps.Clock, log: deps.Log,
		changes:    queue.NewUnique[types.UID](),
		synced:     make(chan struct{}),
		relistNow:  notify.New(),
		pods:       map[types.UID]*record{},
		gone:       map[string]time.Time{},
		messages:   map[string]func() string{},
		inspecting: map[types.UID]bool{},
		unread:     map[types.UID]bool{},
	}, nil
}

// Run observes until ctx is done.
func (o *Observer) Run(ctx context.Context) error {
	o.mu.Lock()
	o.floor = o.clock.Now()
	o.mu.Unlock()
	var parts sync.WaitGroup
	parts.Go(func() { o.changes.Run(ctx) })
	parts.Go(func() { o.follow(ctx) })
	o.relistForever(ctx)
	parts.Wait()
	o.inspections.Wait()
	return nil
}

// Get is what was last seen of a pod; false if the runtime holds nothing of it. The
// value is shared: do not change what it points to.
func (o *Observer) Get(uid types.UID) (pod.Observed, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, ok := o.pods[uid]
	if !ok {
		return pod.Observed{}, false
	}
	return r.view, true
}

// Unread reports whether the runtime holds something of the pod that it did not tell yet:
// then there is more of it than Get knows, and whoever acts on it must Refresh first.
func (o *Observer) Unread(uid types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.unread[uid]
}

// List is what was last seen of all pods, in no order.
func (o *Observer) List() []pod.Observed {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]pod.Observed, 0, len(o.pods))
	for _, r := range o.pods {
		all = append(all, r.view)
	}
	return all
}

// Changes yields the pods of which something new was seen. A pod waits in it once,
// however often it changes; Get tells its newest state. Run feeds it.
func (o *Observer) Changes() <-chan types.UID { return o.changes.C() }

// Synced is closed when the first relist is done: only then does Get's false mean that
// the runtime holds nothing, unless the pod is Unread.
func (o *Observer) Synced() <-chan struct{} { return o.synced }
