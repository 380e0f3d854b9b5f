package admit

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/require"
)

// NodeDeps are the dependencies of a Node.
type NodeDeps struct {
	// Local is the Node as this agent computes it.
	Local func() *v1.Node
	// Watched is the Node of the informer, and Read reads the Node from the API server. Both
	// are nil without an API server.
	Watched func() (*v1.Node, error)
	Read    func(context.Context) (*v1.Node, error)
	// IsDevice reports whether the device manager allocates the resource. Its own check
	// replaces the one against the Node, which may be older.
	IsDevice func(v1.ResourceName) bool
}

// Node provides the Node that pods are checked against. It is not safe for concurrent use.
type Node struct {
	deps NodeDeps
	// fresh is the Node that Resume was called with; nil otherwise.
	fresh *v1.Node
}

// NewNode validates deps and starts nothing.
func NewNode(deps NodeDeps) (*Node, error) {
	if err := require.Set("new admission node", map[string]any{"Local": deps.Local, "IsDevice": deps.IsDevice}); err != nil {
		return nil, err
	}
	if (deps.Watched == nil) != (deps.Read == nil) {
		return nil, errors.New("new admission node: Watched and Read must both be set or both be nil")
	}
	return &Node{deps: deps}, nil
}

// Get returns the Node of the informer, or the local one while the informer's has no
// allocatable resources, without the resources of the device manager.
func (n *Node) Get() (*v1.Node, error) {
	if n.fresh != nil {
		return n.withoutDevices(n.fresh), nil
	}
	node := n.deps.Local()
	if n.deps.Watched != nil {
		if watched, err := n.deps.Watched(); err == nil && len(watched.Status.Allocatable) > 0 {
			node = watched
		}
	}
	return n.withoutDevices(node), nil
}

func (n *Node) withoutDevices(node *v1.Node) *v1.Node {
	var devices []v1.ResourceName
	for name := range node.Status.Allocatable {
		if n.deps.IsDevice(name) {
			devices = append(devices, name)
		}
	}
	if len(devices) == 0 {
		return node
	}
	node = node.DeepCopy()
	for _, name := range devices {
		delete(node.Status.Allocatable, name)
	}
	return node
}

// supportsStrictGroups reports whether the runtime supports SupplementalGroupsPolicy.
func (n *Node) supportsStrictGroups() bool {
	features := n.deps.Local().Status.Features
	return features != nil && features.SupplementalGroupsPolicy != nil && *features.SupplementalGroupsPolicy
}
