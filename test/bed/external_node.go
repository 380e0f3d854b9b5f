package bed

import (
	"context"
	"fmt"
	"path/filepath"
)

// Seat is a place in the bed for a node that is no box: a machine with a kernel of its own.
type Seat struct {
	Interface  string // of this machine: what is sent there is on the bed's wire, and the other way round
	Address    string // with the length of its prefix
	Gateway    string
	Kubeconfig string // the node's
}

// AddSeat makes a place for a node of that name. It goes with the bed.
func (b *Bed) AddSeat(ctx context.Context, name string) (*Seat, error) {
	b.mu.Lock()
	b.hosts++
	host := b.hosts
	b.mu.Unlock()

	link := fmt.Sprintf("%s-%d", b.site.bridge(), host)
	seat := &Seat{
		Interface:  link + "m",
		Address:    b.site.nodeAddress(host) + "/24",
		Gateway:    b.site.gateway(),
		Kubeconfig: filepath.Join(b.site.dir, name+".kubeconfig"),
	}
	steps := [][]string{
		{"link", "add", link, "type", "veth", "peer", "name", seat.Interface},
		{"link", "set", link, "master", b.site.bridge(), "up"},
		{"link", "set", seat.Interface, "up"},
	}
	for _, step := range steps {
		if err := ip(ctx, step...); err != nil {
			return nil, fmt.Errorf("add seat %s: %w", name, err)
		}
	}
	c := b.ControlPlane
	client, err := c.ca.client("node-"+name, "system:node:"+name, "system:nodes")
	if err != nil {
		return nil, fmt.Errorf("add seat %s: %w", name, err)
	}
	return seat, writeKubeconfig(seat.Kubeconfig, c.Server, c.ca, client)
}
