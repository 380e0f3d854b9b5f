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
)

// ip runs iproute2's command.
func ip(ctx context.Context, args ...string) error {
	var said lines
	if _, err := output(ctx, &said, "", "ip", args...); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// addBridge makes the wire that the bed's nodes and its API server share.
func (s *site) addBridge(ctx context.Context) error {
	steps := [][]string{
		// Left to itself a bridge takes the lowest address of its ports, so that each node
		// that comes or goes would cut the others off until they ask for it anew.
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

// attach gives the network namespace of process pid an interface eth0 on the bridge. It
// goes when the namespace does.
func (s *site) attach(ctx context.Context, pid, host int) error {
	link := fmt.Sprintf("%s-%d", s.bridge(), host)
	steps := [][]string{
		{"link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(pid)},
		{"link", "set", link, "master", s.bridge(), "up"},
		// The API server reaches pods too: webhooks, and the proxy of services and pods.
		{"route", "replace", s.podCIDR(host), "via", s.nodeAddress(host), "dev", s.bridge(), "onlink"},
	}
	for _, step := range steps {
		if err := ip(ctx, step...); err != nil {
			return err
		}
	}
	return nil
}

// removeLink deletes an interface of the host, if it is there, with what is attached to it.
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
		// A veth goes by itself with its namespace, maybe just now.
		if _, gone := net.InterfaceByName(name); gone != nil {
			return nil
		}
		return err
	}
	return nil
}

// lines collects what a program says, for an error message.
type lines []byte

var _ io.Writer = (*lines)(nil)

func (l *lines) Write(p []byte) (int, error) { *l = append(*l, p...); return len(p), nil }
func (l lines) String() string               { return string(l) }

// wire lets the pods of this node and of the others reach each other: without a router in
// between, each node needs to know which neighbour holds which pods.
func (b *Bed) wire(ctx context.Context, node *Box) error {
	b.wiring.Lock()
	defer b.wiring.Unlock()
	for _, other := range b.wired {
		for _, way := range [][2]*Box{{node, other}, {other, node}} {
			from, to := way[0], way[1]
			if !from.init.running() {
				continue
			}
			if _, err := from.Exec(ctx, "ip", "route", "replace", to.PodCIDR(), "via", to.Address()); err != nil && from.init.running() {
				return fmt.Errorf("route pods of %s: %w", to.name, err)
			}
		}
	}
	b.wired = append(b.wired, node)
	return nil
}

// unwire has no more routes laid on a node that is about to end.
func (b *Bed) unwire(node *Box) {
	b.wiring.Lock()
	defer b.wiring.Unlock()
	b.wired = slices.DeleteFunc(b.wired, func(other *Box) bool { return other == node })
}
