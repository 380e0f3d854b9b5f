package node

import (
	"context"
	"fmt"
	"net"
	"time"

	v1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// network is how the machine's own addresses are found; tests give their own.
type network struct {
	lookup func(ctx context.Context, host string) ([]net.IP, error)
	own    func() ([]net.Addr, error)
	// byRoute is the address of the interface that the default route leaves by, of the
	// family of the given unspecified address, or IPv4 for nil.
	byRoute func(family net.IP) (net.IP, error)
}

func hostNetwork() network {
	return network{
		lookup: func(ctx context.Context, host string) ([]net.IP, error) {
			return net.DefaultResolver.LookupIP(ctx, "ip", host)
		},
		own:     net.InterfaceAddrs,
		byRoute: utilnet.ResolveBindAddress,
	}
}

const (
	// lookupTimeout bounds how long a broken resolver can hold up a status report.
	lookupTimeout = time.Second
	// addressesFor is how long found addresses are taken for true.
	addressesFor = time.Minute
)

// addresses finds the node's addresses: those given with --node-ip; else the host name if
// it is an address; else what the node's name resolves to, if that is ours; else the
// address of the default route. IPv4 is preferred unless --node-ip is "::".
func (n *network) addresses(ctx context.Context, name, hostname string, given []net.IP) ([]v1.NodeAddress, error) {
	var primary net.IP
	if len(given) > 0 {
		primary = given[0]
	}
	ips := specified(given)
	for _, ip := range ips {
		if err := n.checkOwn(ip); err != nil {
			return nil, fmt.Errorf("use --node-ip: %w", err)
		}
	}
	if len(ips) == 0 || len(ips) < len(given) && primary.IsUnspecified() {
		found, err := n.find(ctx, name, hostname, primary)
		if err != nil {
			return nil, fmt.Errorf("find the address of node %s: %w", name, err)
		}
		ips = []net.IP{found}
	}
	var list []v1.NodeAddress
	for _, ip := range ips {
		list = append(list, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip.String()})
	}
	return append(list, v1.NodeAddress{Type: v1.NodeHostName, Address: hostname}), nil
}

func (n *network) find(ctx context.Context, name, hostname string, primary net.IP) (net.IP, error) {
	if ip := net.ParseIP(hostname); ip != nil {
		return ip, nil
	}
	wantV4 := primary == nil || primary.To4() != nil
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	candidates, _ := n.lookup(ctx, name) // a name that resolves to nothing is common
	var second net.IP
	for _, ip := range candidates {
		if n.checkOwn(ip) != nil {
			continue
		}
		if (ip.To4() != nil) == wantV4 {
			return ip, nil
		}
		if second == nil {
			second = ip
		}
	}
	if second != nil {
		return second, nil
	}
	return n.byRoute(primary)
}

// checkOwn refuses addresses that others could not reach this machine by.
func (n *network) checkOwn(ip net.IP) error {
	switch {
	case ip.To16() == nil:
		return fmt.Errorf("%q is no IP address", ip)
	case ip.IsLoopback():
		return fmt.Errorf("%s is a loopback address", ip)
	case ip.IsMulticast():
		return fmt.Errorf("%s is a multicast address", ip)
	case ip.IsLinkLocalUnicast():
		return fmt.Errorf("%s is a link-local address", ip)
	case ip.IsUnspecified():
		return fmt.Errorf("%s is the unspecified address", ip)
	}
	addrs, err := n.own()
	if err != nil {
		return fmt.Errorf("list the machine's addresses: %w", err)
	}
	for _, a := range addrs {
		if own, ok := a.(*net.IPNet); ok && own.IP.Equal(ip) {
			return nil
		}
	}
	return fmt.Errorf("%s is on none of the machine's interfaces", ip)
}

func specified(ips []net.IP) []net.IP {
	var all []net.IP
	for _, ip := range ips {
		if ip != nil && !ip.IsUnspecified() {
			all = append(all, ip)
		}
	}
	return all
}

// hostIPs picks the addresses that pods on the host's network have.
func hostIPs(addresses []v1.NodeAddress) []net.IP {
	var ips []net.IP
	for _, a := range addresses {
		if ip := net.ParseIP(a.Address); ip != nil && a.Type == v1.NodeInternalIP {
			ips = append(ips, ip)
		}
	}
	return ips
}
