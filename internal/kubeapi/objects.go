package kubeapi

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/notify"
	"swiftlet/internal/require"
)

// Strategy is the change detection strategy for ConfigMaps and Secrets.
type Strategy string

const (
	// StrategyWatch keeps one watch per object in use.
	StrategyWatch Strategy = "Watch"
	// StrategyCache reads an object again when its copy is older than the TTL.
	StrategyCache Strategy = "Cache"
	// StrategyGet sends every read to the API server.
	StrategyGet Strategy = "Get"
)

const defaultTTL = time.Minute

// ObjectsConfig configures Objects.
type ObjectsConfig struct {
	Strategy Strategy
	// TTL returns the age at which StrategyCache reads again. Nil means a minute.
	TTL func() time.Duration
	// Poll is the interval at which StrategyCache and StrategyGet check objects in use for
	// changes, so that mounted files are updated without a watch. Zero means a minute.
	// StrategyCache skips intervals that are shorter than the TTL.
	Poll time.Duration
}

// ObjectsDeps is what Objects works with.
type ObjectsDeps struct {
	Client kubeclient.Interface
	Clock  clock.WithTicker
	Log    *slog.Logger
	// LastKnown keeps the objects; nil: off.
	LastKnown *LastKnown
	// Reconnects ends the back-off of watches; may be nil.
	Reconnects *Reconnects
}

// Objects reads the ConfigMaps and Secrets that pods of this node use, and notifies subscribers
// of changes. It watches an object from the first Register of a pod that uses it to the
// Unregister of the last. All methods may be called from any goroutine.
type Objects struct {
	cfg  ObjectsConfig
	deps ObjectsDeps

	mu          sync.Mutex
	running     context.Context // nil until Run and after it
	pods        map[types.UID][]Ref
	items       map[Ref]*object
	unwatched   notify.Signal // an object has no watch
	subscribers []func(kind, namespace, name string)
	watches     sync.WaitGroup
}

// NewObjects validates and starts nothing.
func NewObjects(cfg ObjectsConfig, deps ObjectsDeps) (*Objects, error) {
	switch cfg.Strategy {
	case StrategyWatch, StrategyCache, StrategyGet:
	case "":
		cfg.Strategy = StrategyWatch
	default:
		return nil, fmt.Errorf("new object store: unknown change detection strategy %q", cfg.Strategy)
	}
	if err := require.Set("new object store", map[string]any{
		"Client": deps.Client, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	if cfg.TTL == nil {
		cfg.TTL = func() time.Duration { return defaultTTL }
	}
	if cfg.Poll <= 0 {
		cfg.Poll = time.Minute
	}
	return &Objects{cfg: cfg, deps: deps, pods: map[types.UID][]Ref{}, items: map[Ref]*object{}, unwatched: notify.New()}, nil
}

// OnChange adds a function that is called for every created, changed or deleted object in use,
// from a watch's goroutine. It must not block. Call OnChange before Run.
func (o *Objects) OnChange(f func(kind, namespace, name string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.subscribers = append(o.subscribers, f)
}

// Run watches, or polls, until ctx is done; it returns when every watch has stopped.
func (o *Objects) Run(ctx context.Context) error {
	o.mu.Lock()
	o.running = ctx
	for _, item := range o.items {
		o.watchLocked(item)
	}
	o.mu.Unlock()

	if o.cfg.Strategy == StrategyWatch {
		o.pollUnwatched(ctx)
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

// Register adds the objects that p uses. Called again for a changed pod, it applies the difference.
func (o *Objects) Register(p *v1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	after := References(p)
	before := o.pods[p.UID]
	o.pods[p.UID] = after
	for i, ref := range after {
		if !contains(before, ref) {
			o.useLocked(ref, i < maxWatches)
		}
	}
	for _, ref := range before {
		if !contains(after, ref) {
			o.releaseLocked(ref)
		}
	}
}

// Unregister removes p, and stops the watches of objects that no other pod uses.
func (o *Objects) Unregister(p *v1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, ref := range o.pods[p.UID] {
		o.releaseLocked(ref)
	}
	delete(o.pods, p.UID)
}

// useLocked watches the object if watched is set, or if another pod has it watched.
func (o *Objects) useLocked(ref Ref, watched bool) {
	item := o.items[ref]
	if item == nil {
		item = newObject(ref, o.notify)
		o.items[ref] = item
		item.unwatched = true
	}
	switch {
	case watched && item.unwatched:
		item.unwatched = false
		o.watchLocked(item)
	case item.unwatched && o.cfg.Strategy == StrategyWatch:
		item.setFailed()
		o.unwatched.Notify()
	}
	item.users++
	// A new pod must see the object's latest version, not a copy that may be a minute old.
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
		o.deps.LastKnown.forget(ref.String())
	}
}

// ConfigMap returns the object, or a NotFound error. Callers must not modify it.
func (o *Objects) ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	got, err := o.read(ctx, Ref{KindConfigMap, namespace, name})
	if err != nil {
		return nil, err
	}
	return got.(*v1.ConfigMap), nil
}

// Secret returns the object, or a NotFound error. Callers must not modify it.
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

// readWatched waits for the watch's first list. If the watch could not start (the node
// authorizer may see a new pod later than the node does), it reads directly.
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

// fetchInto reads one object in use and stores the result.
func (o *Objects) fetchInto(ctx context.Context, item *object) (metav1.Object, error) {
	got, err := RetryForbidden(ctx, func() (metav1.Object, error) { return o.fetch(ctx, item.ref) })
	return item.setFetched(got, err, o.deps.Clock.Now())
}

func (o *Objects) notify(ref Ref) {
	o.mu.Lock()
	subscribers := o.subscribers
	o.mu.Unlock()
	for _, f := range subscribers {
		f(ref.Kind, ref.Namespace, ref.Name)
	}
}
