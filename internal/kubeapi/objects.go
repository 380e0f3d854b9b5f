package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// Strategy is how changes of ConfigMaps and Secrets are noticed.
type Strategy string

const (
	// StrategyWatch keeps one watch per object in use.
	StrategyWatch Strategy = "Watch"
	// StrategyCache reads an object again when its copy is older than a time to live.
	StrategyCache Strategy = "Cache"
	// StrategyGet asks the API server at every read.
	StrategyGet Strategy = "Get"
)

// ObjectsConfig sets how Objects reads.
type ObjectsConfig struct {
	Strategy Strategy
	// TTL is the age at which StrategyCache reads again; it may change with the node's
	// ttl annotation. Nil means a minute.
	TTL func() time.Duration
	// Poll is how often StrategyCache and StrategyGet look for changes of objects in use,
	// so that mounted files follow without a watch. Zero means a minute.
	Poll time.Duration
}

// ObjectsDeps is what Objects works with.
type ObjectsDeps struct {
	Client kubernetes.Interface
	Clock  clock.WithTicker
	Log    *slog.Logger
}

// Objects reads the ConfigMaps and Secrets that pods of this node use, and tells when one
// changes. An object is watched from the first Register of a pod that uses it to the
// Unregister of the last. All methods may be called from any goroutine.
type Objects struct {
	cfg  ObjectsConfig
	deps ObjectsDeps

	mu          sync.Mutex
	running     context.Context // nil until Run and after it
	pods        map[types.UID]map[Ref]struct{}
	items       map[Ref]*object
	subscribers []func(kind, namespace, name string)
	watches     sync.WaitGroup
}

// NewObjects checks the configuration. Nothing is read before Run or the first read.
func NewObjects(cfg ObjectsConfig, deps ObjectsDeps) (*Objects, error) {
	switch cfg.Strategy {
	case StrategyWatch, StrategyCache, StrategyGet:
	case "":
		cfg.Strategy = StrategyWatch
	default:
		return nil, fmt.Errorf("make object store: unknown change detection strategy %q", cfg.Strategy)
	}
	if deps.Client == nil || deps.Clock == nil || deps.Log == nil {
		return nil, errors.New("make object store: Client, Clock and Log are needed")
	}
	if cfg.TTL == nil {
		cfg.TTL = func() time.Duration { return time.Minute }
	}
	if cfg.Poll <= 0 {
		cfg.Poll = time.Minute
	}
	return &Objects{cfg: cfg, deps: deps, pods: map[types.UID]map[Ref]struct{}{}, items: map[Ref]*object{}}, nil
}

// OnChange adds a function that is told of every change, creation and deletion of an
// object in use. It is called from a watch's goroutine and must return at once.
// Call it before Run.
func (o *Objects) OnChange(f func(kind, namespace, name string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.subscribers = append(o.subscribers, f)
}

// Run keeps the watches, or polls, until ctx is done; it returns when all have ended.
func (o *Objects) Run(ctx context.Context) error {
	o.mu.Lock()
	o.running = ctx
	for _, item := range o.items {
		o.watchLocked(item)
	}
	o.mu.Unlock()

	if o.cfg.Strategy == StrategyWatch {
		<-ctx.Done()
	} else {
		o.poll(ctx)
	}

	o.mu.Lock()
	o.running = nil
	for _, item := range o.items {
		item.stopWatch()
	}
	o.mu.Unlock()
	o.watches.Wait()
	return nil
}

// Register notes what p uses. Called again for a changed pod, it takes the difference.
func (o *Objects) Register(p *v1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	wanted := References(p)
	had := o.pods[p.UID]
	o.pods[p.UID] = wanted
	for ref := range wanted {
		if _, ok := had[ref]; !ok {
			o.useLocked(ref)
		}
	}
	for ref := range had {
		if _, ok := wanted[ref]; !ok {
			o.releaseLocked(ref)
		}
	}
}

// Unregister forgets p; objects that nobody else uses are no longer watched.
func (o *Objects) Unregister(p *v1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for ref := range o.pods[p.UID] {
		o.releaseLocked(ref)
	}
	delete(o.pods, p.UID)
}

func (o *Objects) useLocked(ref Ref) {
	item := o.items[ref]
	if item == nil {
		item = newObject(ref, o.notify)
		o.items[ref] = item
		o.watchLocked(item)
	}
	item.users++
	// A new pod must see what its author just wrote, not a copy that may be a minute old.
	item.expire()
}

func (o *Objects) releaseLocked(ref Ref) {
	item := o.items[ref]
	if item == nil {
		return
	}
	if item.users--; item.users == 0 {
		item.stopWatch()
		delete(o.items, ref)
	}
}

// ConfigMap returns the object as the API server has it. It must not be changed.
// A missing one is an apimachinery NotFound error.
func (o *Objects) ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	got, err := o.read(ctx, Ref{KindConfigMap, namespace, name})
	if err != nil {
		return nil, err
	}
	return got.(*v1.ConfigMap), nil
}

// Secret is ConfigMap for Secrets.
func (o *Objects) Secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	got, err := o.read(ctx, Ref{KindSecret, namespace, name})
	if err != nil {
		return nil, err
	}
	return got.(*v1.Secret), nil
}

func (o *Objects) read(ctx context.Context, ref Ref) (metav1.Object, error) {
	o.mu.Lock()
	item, running := o.items[ref], o.running != nil
	o.mu.Unlock()
	switch {
	case item == nil:
		return o.fetch(ctx, ref)
	case o.cfg.Strategy == StrategyWatch && running:
		return o.readWatched(ctx, item)
	case o.cfg.Strategy == StrategyCache:
		if got, err, fresh := item.cached(o.deps.Clock.Now().Add(-o.cfg.TTL())); fresh {
			return got, err
		}
	}
	return o.fetchInto(ctx, item)
}

// readWatched waits for the watch's first word. Where the watch could not be opened (the
// node authorizer may learn of a new pod a moment after us), a direct read answers.
func (o *Objects) readWatched(ctx context.Context, item *object) (metav1.Object, error) {
	select {
	case <-item.synced:
	case <-item.failed:
		select {
		case <-item.synced:
		default:
			return o.fetchInto(ctx, item)
		}
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for %s %s/%s: %w", item.ref.Kind, item.ref.Namespace, item.ref.Name, ctx.Err())
	}
	got, err := item.serve()
	if err == nil && immutable(got) {
		item.stopWatch()
	}
	return got, err
}

// fetchInto reads one object in use and remembers the answer.
func (o *Objects) fetchInto(ctx context.Context, item *object) (metav1.Object, error) {
	got, err := Granted(ctx, func() (metav1.Object, error) { return o.fetch(ctx, item.ref) })
	return item.remember(got, err, o.deps.Clock.Now())
}

func (o *Objects) notify(ref Ref) {
	o.mu.Lock()
	subscribers := o.subscribers
	o.mu.Unlock()
	for _, f := range subscribers {
		f(ref.Kind, ref.Namespace, ref.Name)
	}
}
