package source

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/kubeclient"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// PodClient accesses the API server's pods.
type PodClient interface {
	Pods(namespace string) kubeclient.Pods
}

// APIConfig is the configuration of an API source.
type APIConfig struct {
	NodeName string
}

// APIDeps are the dependencies of an API source.
type APIDeps struct {
	Out    chan<- pod.Snapshot
	Client PodClient
	Clock  clock.PassiveClock
	Log    *slog.Logger
	// Ready, if set, blocks until the Node has been read: admission needs its labels.
	Ready func(ctx context.Context) error
	// LastKnown keeps the pods for a start without the API server; nil: off. Then Warn, which records a
	// warning event about the node, is not used.
	LastKnown *kubeapi.LastKnown
	Warn      func(reason, message string)
}

// API is the source of the pods that are bound to this node. While the API server is unavailable, the
// last pods stay.
type API struct {
	cfg  APIConfig
	deps APIDeps

	mu       sync.Mutex
	pods     map[types.NamespacedName]*v1.Pod
	listed   bool          // at least once
	restored bool          // pods are those of the last contact
	relisted bool          // since the last snapshot
	changed  notify.Signal // set while pods are newer than the last snapshot
}

// NewAPI validates and starts nothing.
func NewAPI(cfg APIConfig, deps APIDeps) (*API, error) {
	if err := require.Set("new API source", map[string]any{
		"NodeName": cfg.NodeName, "Out": deps.Out, "Client": deps.Client, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	return &API{
		cfg:     cfg,
		deps:    deps,
		pods:    map[types.NamespacedName]*v1.Pod{},
		changed: notify.New(),
	}, nil
}

// backoff is shorter than client-go's, which would delay pods for up to a minute after the API server is
// available again. It is one request per node, and the API server's priority levels limit the load of
// many nodes.
var backoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 4, Cap: 2 * time.Second}

// Run sends a snapshot after the first list and then after every change. It coalesces changes that arrive
// while a snapshot waits for the receiver.
func (a *API) Run(ctx context.Context) error {
	if a.deps.Ready != nil {
		if err := a.deps.Ready(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("wait for Node: %w", err)
		}
	}
	reflector := kubeapi.Reflector{
		Client:    a.deps.Client,
		Source:    a.listWatch(),
		Sample:    &v1.Pod{},
		Store:     (*apiStore)(a),
		Options:   cache.ReflectorOptions{Name: "pods of " + a.cfg.NodeName, Backoff: &backoff},
		LastKnown: a.deps.LastKnown,
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { reflector.Run(ctx) })
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.changed:
		}
		select {
		case <-ctx.Done():
			return nil
		case a.deps.Out <- a.snapshot():
		}
	}
}

func (a *API) listWatch() *cache.ListWatch {
	ofThisNode := fields.OneTermEqualSelector("spec.nodeName", a.cfg.NodeName).String()
	pods := a.deps.Client.Pods(metav1.NamespaceAll)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = ofThisNode
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = ofThisNode
			return pods.Watch(ctx, o)
		},
	}
}

func (a *API) snapshot() pod.Snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := pod.Snapshot{Source: pod.SourceAPI, Pods: slices.Collect(maps.Values(a.pods)), Listed: a.relisted, Partial: a.restored}
	a.relisted = false
	return s
}
