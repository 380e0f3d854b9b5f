package source

import (
	"context"
	"errors"
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
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
)

// APIConfig says whose pods are wanted.
type APIConfig struct {
	NodeName string
}

// APIDeps are what an API source needs from outside.
type APIDeps struct {
	Out    chan<- pod.Snapshot
	Client corev1.PodsGetter
	Log    *slog.Logger
	// Ready, where set, blocks until this node is known: until its labels are, no pod can
	// be judged.
	Ready func(ctx context.Context) error
}

// API is the source of the pods that the API server has bound to this node. While the API
// server cannot be reached, its last word stands.
type API struct {
	cfg  APIConfig
	deps APIDeps

	mu      sync.Mutex
	pods    map[types.NamespacedName]*v1.Pod
	listed  bool          // at least once
	fresh   bool          // since the last snapshot
	changed notify.Signal // holds one token while pods are newer than what was sent
}

// NewAPI asks for nothing yet.
func NewAPI(cfg APIConfig, deps APIDeps) (*API, error) {
	if cfg.NodeName == "" {
		return nil, errors.New("API source: node name is needed")
	}
	if deps.Out == nil || deps.Client == nil || deps.Log == nil {
		return nil, errors.New("API source: channel, client and log are needed")
	}
	return &API{
		cfg:     cfg,
		deps:    deps,
		pods:    map[types.NamespacedName]*v1.Pod{},
		changed: notify.New(),
	}, nil
}

// backoff is shorter than client-go's own, which would leave pods waiting for up to a
// minute after the API server has come back. It is one request of one node, and the API
// server's priority levels keep many nodes from crowding out others.
var backoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 4, Cap: 2 * time.Second}

// Run sends a snapshot when the pods were first listed and then on every change. Changes
// that come while a snapshot waits to be taken are joined, so a burst costs few.
func (a *API) Run(ctx context.Context) error {
	if a.deps.Ready != nil {
		if err := a.deps.Ready(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("wait for the node: %w", err)
		}
	}
	reflector := kubeapi.Reflector{
		Client:  a.deps.Client,
		Source:  a.listWatch(),
		Sample:  &v1.Pod{},
		Store:   (*apiStore)(a),
		Options: cache.ReflectorOptions{Name: "pods of " + a.cfg.NodeName, Backoff: &backoff},
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
	mine := fields.OneTermEqualSelector("spec.nodeName", a.cfg.NodeName).String()
	pods := a.deps.Client.Pods(metav1.NamespaceAll)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = mine
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = mine
			return pods.Watch(ctx, o)
		},
	}
}

func (a *API) snapshot() pod.Snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := pod.Snapshot{Source: pod.SourceAPI, Pods: slices.Collect(maps.Values(a.pods)), Listed: a.fresh}
	a.fresh = false
	return s
}
