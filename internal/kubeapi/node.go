package kubeapi

import (
	"context"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/require"
)

// Node caches this node's Node object.
type Node struct {
	*collection
	kube kubeclient.Interface
	name string
}

// NewNode starts nothing; Run watches this node alone.
func NewNode(client kubeclient.Interface, name string) (*Node, error) {
	if err := require.Set("new node lister", map[string]any{"client": client, "name": name}); err != nil {
		return nil, err
	}
	api := client.Nodes()
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = selector
			return api.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = selector
			return api.Watch(ctx, opts)
		},
	}
	return &Node{newCollection("node", client, lw, &v1.Node{}, trimNode), client, name}, nil
}

// OnChange adds a function that is called after each change. Call it before Run.
func (n *Node) OnChange(f func()) { n.onChange = append(n.onChange, f) }

// OnRelist sets a function that is called after each list but the first: the node's resource
// version may have gone back. Call it before Run.
func (n *Node) OnRelist(f func()) { n.onRelist = f }

// Get returns the node without its image list, or a NotFound error. Callers must not modify it.
func (n *Node) Get() (*v1.Node, error) {
	obj, ok, err := n.GetByKey(n.name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, apierrors.NewNotFound(v1.Resource("nodes"), n.name)
	}
	return obj.(*v1.Node), nil
}

// trimNode drops the largest parts of a Node, which the agent does not read.
func trimNode(obj any) any {
	node, ok := obj.(*v1.Node)
	if !ok {
		return obj
	}
	trimmed := *node
	trimmed.Status.Images, trimmed.ManagedFields = nil, nil
	return &trimmed
}
