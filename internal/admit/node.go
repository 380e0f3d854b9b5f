package admit

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
)

// NodeDeps is where the Node is known from.
type NodeDeps struct {
	// Own is the Node as this agent reports it.
	Own func() *v1.Node
	// Watched is the Node as the watch last showed it, and Read reads it from the API server.
	// Both are nil without an API server.
	Watched func() (*v1.Node, error)
	Read    func(context.Context) (*v1.Node, error)
	// Allocates reports the resources that the device manager allocates. It knows better than
	// the Node, which may be older, which devices are free.
	Allocates func(v1.ResourceName) bool
}

// Node is the Node that pods are measured against. It is for one goroutine at a time.
type Node struct {
	deps NodeDeps
	// fresh was just read for the pods that are being decided on; nil at other times.
	fresh *v1.Node
}

// NewNode validates and starts nothing.
func NewNode(deps NodeDeps) (*Node, error) {
	if deps.Own == nil || deps.Allocates == nil || (deps.Watched == nil) != (deps.Read == nil) {
		return nil, errors.New("new node: own and allocates are needed, and both or none of watched and read")
	}
	return &Node{deps: deps}, nil
}

// Get is the Node as last seen, with what this machine can give where the API server does
// not show that yet, and without what the device manager allocates.
func (n *Node) Get() (*v1.Node, error) {
	if n.fresh != nil {
		return n.withoutDevices(n.fresh), nil
	}
	node := n.deps.Own()
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
		if n.deps.Allocates(name) {
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

// strictGroups reports whether the runtime can hold a pod to a strict list of groups.
func (n *Node) strictGroups() bool {
	features := n.deps.Own().Status.Features
	return features != nil && features.SupplementalGroupsPolicy != nil && *features.SupplementalGroupsPolicy
}
