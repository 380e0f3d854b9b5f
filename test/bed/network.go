package bed

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"swiftlet/test/uml"
)

// ip runs iproute2's command.
func ip(ctx context.Context, args ...string) error {
	var stderr outputBuffer
	if _, err := output(ctx, &stderr, "", "ip", args...); err != nil {
		return fmt.Errorf("%w: %s", err, stderr)
	}
	return nil
}

// addBridge creates the bridge that connects the bed's nodes and its API server.
func (s *slot) addBridge(ctx context.Context) error {
	steps := [][]string{
		// By default a bridge takes the lowest MAC address of its ports. It would change whenever
		// a node is added or removed, and cut others off until their ARP entries expire.
		{"link", "add", s.bridge(), "address", s.bridgeMAC(), "type", "bridge"},
		{"addr", "add", s.gateway() + "/24", "dev", s.bridge()},
		{"link", "set", s.bridge(), "up"},
	}
	for _, step := range steps {
		if err := ip(ctx, step...); err != nil {
			return err
		}
	}
	return nil
}

// attach adds an interface eth0 on the bridge to the network namespace of process pid. The kernel
// removes it with the namespace.
func (s *slot) attach(ctx context.Context, pid, host int) error {
	return s.addNodeLink(ctx, host, "eth0", "netns", strconv.Itoa(pid))
}

// nodeLink is the bridge port of a node.
func (s *slot) nodeLink(host int) string { return fmt.Sprintf("%s-%d", s.bridge(), host) }

// addNodeLink creates the bridge port of a node and its peer.
func (s *slot) addNodeLink(ctx context.Context, host int, peer ...string) error {
	link := s.nodeLink(host)
	steps := [][]string{
		append([]string{"link", "add", link, "type", "veth", "peer", "name"}, peer...),
		{"link", "set", link, "master", s.bridge(), "up"},
		// The API server connects to pods for webhooks and for the proxy subresources.
		{"route", "replace", s.podCIDR(host), "via", s.nodeAddress(host), "dev", s.bridge(), "onlink"},
	}
	for _, step := range steps {
		if err := ip(ctx, step...); err != nil {
			return err
		}
	}
	return nil
}

// attachMachine adds an interface of the host on the bridge and returns the network of a machine
// that is connected to it.
func (s *slot) attachMachine(ctx context.Context, host int) (*uml.Network, error) {
	n := &uml.Network{Interface: s.nodeLink(host) + "m", Address: s.nodeAddress(host) + "/24", Gateway: s.gateway()}
	if err := s.addNodeLink(ctx, host, n.Interface); err != nil {
		return nil, err
	}
	return n, ip(ctx, "link", "set", n.Interface, "up")
}

// removeLink deletes an interface of the host, if it exists, and its bridge ports.
func removeLink(name string) error {
	members, err := os.ReadDir(filepath.Join("/sys/class/net", name, "brif"))
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("read bridge %s: %w", name, err)
	}
	for _, member := range members {
		if err := removeLink(member.Name()); err != nil {
			return err
		}
	}
	if _, err := net.InterfaceByName(name); err != nil {
		return nil
	}
	if err := ip(context.Background(), "link", "del", name); err != nil {
		// The kernel removes a veth with its namespace, which may have just happened.
		if _, gone := net.InterfaceByName(name); gone != nil {
			return nil
		}
		return err
	}
	return nil
}

// outputBuffer collects the output of a program, for an error message.
type outputBuffer []byte

var _ io.Writer = (*outputBuffer)(nil)

func (l *outputBuffer) Write(p []byte) (int, error) { *l = append(*l, p...); return len(p), nil }
func (l outputBuffer) String() string               { return string(l) }

// addPodRoutes adds routes between the pods of this node and of the other nodes: there is no
// router, so every node needs a route to every other pod CIDR.
func (b *Bed) addPodRoutes(ctx context.Context, node *Box) error {
	b.routesMu.Lock()
	defer b.routesMu.Unlock()
	for _, other := range b.routed {
		for _, pair := range [][2]*Box{{node, other}, {other, node}} {
			from, to := pair[0], pair[1]
			if !from.init.running() {
				continue
			}
			if _, err := from.Exec(ctx, "ip", "route", "replace", to.PodCIDR(), "via", to.Address()); err != nil && from.init.running() {
				return fmt.Errorf("route pods of %s: %w", to.name, err)
			}
		}
	}
	b.routed = append(b.routed, node)
	return nil
}

// stopPodRoutes stops adding routes to a node that is about to be closed.
func (b *Bed) stopPodRoutes(node *Box) {
	b.routesMu.Lock()
	defer b.routesMu.Unlock()
	b.routed = slices.DeleteFunc(b.routed, func(other *Box) bool { return other == node })
}
