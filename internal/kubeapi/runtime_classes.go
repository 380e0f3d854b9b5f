package kubeapi

import (
	"context"
	"errors"

	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// RuntimeClasses knows the cluster's runtime classes.
type RuntimeClasses struct{ *collection }

// NewRuntimeClasses starts nothing; Run watches.
func NewRuntimeClasses(client kubernetes.Interface) (*RuntimeClasses, error) {
	if client == nil {
		return nil, errors.New("make runtime class lister: no client")
	}
	api := client.NodeV1().RuntimeClasses()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, opts)
		},
		WatchFuncWithContext: api.Watch,
	}
	return &RuntimeClasses{newCollection("runtimeclasses", client, lw, &nodev1.RuntimeClass{}, withoutManagedFields)}, nil
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

func withoutManagedFields(obj any) any {
	class, ok := obj.(*nodev1.RuntimeClass)
	if !ok {
		return obj
	}
	kept := *class
	kept.ManagedFields = nil
	return &kept
}
