package kubeapi

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// watchLocked starts the watch of one object, if the strategy uses watches and Run has started.
func (o *Objects) watchLocked(item *object) {
	if o.cfg.Strategy != StrategyWatch || o.running == nil || item.unwatched {
		return
	}
	ctx, cancel := context.WithCancel(o.running)
	item.stop = cancel
	reflector := o.reflector(item)
	o.watches.Go(func() {
		defer cancel()
		reflector.Run(ctx)
	})
}

// reflector watches one object. The node authorizer allows a node objects by name only, hence
// the field selector.
func (o *Objects) reflector(item *object) Reflector {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, item.ref.Name).String()
	list, watchFrom, expected := o.source(item.ref)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = selector
			got, err := list(ctx, opts)
			return got, o.checkWatch(item, err)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = selector
			w, err := watchFrom(ctx, opts)
			return w, o.checkWatch(item, err)
		},
	}
	return Reflector{Client: o.deps.Client, Source: lw, Sample: expected, Store: item, LastKnown: o.deps.LastKnown, Reconnects: o.deps.Reconnects,
		Options: cache.ReflectorOptions{
			Name:            item.ref.String(),
			MinWatchTimeout: 30 * time.Minute,
			Clock:           o.deps.Clock,
			// The node authorizer allows a new pod's objects within milliseconds, so the
			// first retries are quick; the cap protects an overloaded server.
			Backoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 9, Cap: 30 * time.Second},
		}}
}

// checkWatch makes readers that wait for a watch's first list read directly, if the watch could
// not start.
func (o *Objects) checkWatch(item *object, err error) error {
	if err != nil {
		item.setFailed()
		o.deps.Log.Debug("watch object: interrupted", "kind", item.ref.Kind, "namespace", item.ref.Namespace, "name", item.ref.Name, "err", err)
	}
	return err
}

type listFunc func(context.Context, metav1.ListOptions) (runtime.Object, error)
type watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

func (o *Objects) source(ref Ref) (listFunc, watchFunc, runtime.Object) {
	if ref.Kind == KindSecret {
		api := o.deps.Client.Secrets(ref.Namespace)
		return func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) { return api.List(ctx, opts) },
			api.Watch, &v1.Secret{}
	}
	api := o.deps.Client.ConfigMaps(ref.Namespace)
	return func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) { return api.List(ctx, opts) },
		api.Watch, &v1.ConfigMap{}
}

// fetch reads one object directly from the API server.
func (o *Objects) fetch(ctx context.Context, ref Ref) (metav1.Object, error) {
	if ref.Kind == KindSecret {
		got, err := o.deps.Client.Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return trim(got), nil
	}
	got, err := o.deps.Client.ConfigMaps(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return trim(got), nil
}
