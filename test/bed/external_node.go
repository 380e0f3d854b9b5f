package bed

import (
	"context"
	"fmt"
	"path/filepath"

	"swiftlet/test/uml"
)

// ExternalNode is the network and identity of a node that the caller runs on a machine of its own.
// Machine is a node that the bed runs.
type ExternalNode struct {
	Network    *uml.Network
	Kubeconfig string // of the node
}

// AddExternalNode creates the interface and the kubeconfig of a node. They are removed with the
// bed.
func (b *Bed) AddExternalNode(ctx context.Context, name string) (*ExternalNode, error) {
	b.mu.Lock()
	b.hosts++
	host := b.hosts
	b.mu.Unlock()

	network, err := b.slot.attachMachine(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("add external node %s: %w", name, err)
	}
	c := b.ControlPlane
	client, err := c.ca.client("node-"+name, "system:node:"+name, "system:nodes")
	if err != nil {
		return nil, fmt.Errorf("add external node %s: %w", name, err)
	}
	node := &ExternalNode{Network: network, Kubeconfig: filepath.Join(b.slot.dir, name+".kubeconfig")}
	return node, writeKubeconfig(node.Kubeconfig, c.Server, c.ca, client)
}
