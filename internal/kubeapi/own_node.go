package kubeapi

import (
	"context"
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeRef is the object of events about a node. Its UID is the node's name, as kubectl
// describe expects it.
func NodeRef(name string) *v1.ObjectReference {
	return &v1.ObjectReference{Kind: "Node", Name: name, UID: types.UID(name)}
}

// Watched is the Node as the watch last showed it, without its image list. It must not be
// changed.
func (n *Node) Watched() (*v1.Node, error) {
	node, err := n.Get()
	if err != nil {
		return nil, fmt.Errorf("node %s is not known yet: %w", n.name, err)
	}
	return node, nil
}

// UID is that of the Node, once it is known. A Node that is being deleted has none.
func (n *Node) UID() (types.UID, bool) {
	node, err := n.Get()
	if err != nil || node.DeletionTimestamp != nil {
		return "", false
	}
	return node.UID, true
}

// ObjectTTL is how long a copy of a ConfigMap or Secret may be used, by the Node's annotation. The
// controller manager sets it to 0 in small clusters and to more in large ones.
func (n *Node) ObjectTTL() time.Duration {
	node, err := n.Get()
	if err != nil {
		return defaultTTL
	}
	seconds, err := strconv.Atoi(node.Annotations[v1.ObjectTTLAnnotationKey])
	if err != nil {
		return defaultTTL
	}
	return time.Duration(seconds) * time.Second
}

// Read reads the Node from the API server, for changes that the watch has not shown yet.
func (n *Node) Read(ctx context.Context) (*v1.Node, error) {
	node, err := n.kube.Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read node %s: %w", n.name, err)
	}
	return node, nil
}

// WaitSynced returns when the Node was listed for the first time.
func (n *Node) WaitSynced(ctx context.Context) error {
	select {
	case <-n.Synced():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the node to be known: %w", ctx.Err())
	}
}
