package bed

import (
	"context"
	"fmt"
	"path/filepath"
)

// ExternalNode is the network and identity of a node that is not a box: a virtual machine with its
// own kernel.
type ExternalNode struct {
	Interface  string // of the host; connected to the bed's bridge
	Address    string // with prefix length
	Gateway    string
	Kubeconfig string // of the node
}

// AddExternalNode creates the interface and the kubeconfig of a node. They are removed with the
// bed.
func (b *Bed) AddExternalNode(ctx context.Context, name string) (*ExternalNode, error) {
	b.mu.Lock()
	b.hosts++
	host := b.hosts
	b.mu.Unlock()

	link := fmt.Sprintf("%s-%d", b.slot.bridge(), host)
	node := &ExternalNode{
		Interface:  link + "m",
		Address:    b.slot.nodeAddress(host) + "/24",
		Gateway:    b.slot.gateway(),
		Kubeconfig: filepath.Join(b.slot.dir, name+".kubeconfig"),
	}
	steps := [][]string{
		{"link", "add", link, "type", "veth", "peer", "name", node.Interface},
		{"link", "set", link, "master", b.slot.bridge(), "up"},
		{"link", "set", node.Interface, "up"},
	}
	for _, step := range steps {
		if err := ip(ctx, step...); err != nil {
			return nil, fmt.Errorf("add external node %s: %w", name, err)
		}
	}
	c := b.ControlPlane
	client, err := c.ca.client("node-"+name, "system:node:"+name, "system:nodes")
	if err != nil {
		return nil, fmt.Errorf("add external node %s: %w", name, err)
	}
	return node, writeKubeconfig(node.Kubeconfig, c.Server, c.ca, client)
}
