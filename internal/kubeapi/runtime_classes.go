package kubeapi

import (
	"context"

	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/require"
)

// RuntimeClasses caches the cluster's RuntimeClass objects.
type RuntimeClasses struct{ *collection }

// NewRuntimeClasses starts nothing; Run watches.
func NewRuntimeClasses(client kubeclient.Interface) (*RuntimeClasses, error) {
	if err := require.Set("new runtime class lister", map[string]any{"client": client}); err != nil {
		return nil, err
	}
	api := client.RuntimeClasses()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, opts)
		},
		WatchFuncWithContext: api.Watch,
	}
	return &RuntimeClasses{newCollection("runtimeclasses", client, lw, &nodev1.RuntimeClass{}, trimRuntimeClass)}, nil
}

// Get returns one runtime class, or a NotFound error.
func (r *RuntimeClasses) Get(name string) (*nodev1.RuntimeClass, error) {
	obj, ok, err := r.GetByKey(name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, apierrors.NewNotFound(nodev1.Resource("runtimeclass"), name)
	}
	return obj.(*nodev1.RuntimeClass), nil
}

func trimRuntimeClass(obj any) any {
	class, ok := obj.(*nodev1.RuntimeClass)
	if !ok {
		return obj
	}
	trimmed := *class
	trimmed.ManagedFields = nil
	return &trimmed
}
