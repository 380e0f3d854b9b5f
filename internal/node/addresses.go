package node

import (
	"context"
	"fmt"
	"net"
	"time"

	v1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// network reads the machine's addresses; tests replace it.
type network struct {
	lookup         func(ctx context.Context, host string) ([]net.IP, error)
	interfaceAddrs func() ([]net.Addr, error)
	// defaultRouteIP is the address of the interface of the default route, in the family of
	// the given unspecified address, or IPv4 for nil.
	defaultRouteIP func(family net.IP) (net.IP, error)
}

func hostNetwork() network {
	return network{
		lookup: func(ctx context.Context, host string) ([]net.IP, error) {
			return net.DefaultResolver.LookupIP(ctx, "ip", host)
		},
		interfaceAddrs: net.InterfaceAddrs,
		defaultRouteIP: utilnet.ResolveBindAddress,
	}
}

const (
	// lookupTimeout limits how long a broken resolver can delay a status report.
	lookupTimeout = time.Second
	// addressesTTL is how long the addresses are cached.
	addressesTTL = time.Minute
)

// addresses determines the node's addresses: those of --node-ip; else the host name if it is
// an IP address; else the address that the node's name resolves to, if an interface has it;
// else the address of the default route. IPv4 is preferred unless --node-ip is "::".
func (n *network) addresses(ctx context.Context, name, hostname string, given []net.IP) ([]v1.NodeAddress, error) {
	var primary net.IP
	if len(given) > 0 {
		primary = given[0]
	}
	ips := specified(given)
	for _, ip := range ips {
		if err := n.checkLocal(ip); err != nil {
			return nil, fmt.Errorf("check --node-ip: %w", err)
		}
	}
	if len(ips) == 0 || len(ips) < len(given) && primary.IsUnspecified() {
		found, err := n.findIP(ctx, name, hostname, primary)
		if err != nil {
			return nil, fmt.Errorf("determine address of node %s: %w", name, err)
		}
		ips = []net.IP{found}
	}
	var list []v1.NodeAddress
	for _, ip := range ips {
		list = append(list, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip.String()})
	}
	return append(list, v1.NodeAddress{Type: v1.NodeHostName, Address: hostname}), nil
}

func (n *network) findIP(ctx context.Context, name, hostname string, primary net.IP) (net.IP, error) {
	if ip := net.ParseIP(hostname); ip != nil {
		return ip, nil
	}
	wantV4 := primary == nil || primary.To4() != nil
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	candidates, _ := n.lookup(ctx, name) // a name that resolves to nothing is common
	var second net.IP
	for _, ip := range candidates {
		if n.checkLocal(ip) != nil {
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
	return n.defaultRouteIP(primary)
}

// checkLocal returns an error for an address that other machines cannot reach this one by.
func (n *network) checkLocal(ip net.IP) error {
	switch {
	case ip.To16() == nil:
		return fmt.Errorf("%q is not an IP address", ip)
	case ip.IsLoopback():
		return fmt.Errorf("%s is a loopback address", ip)
	case ip.IsMulticast():
		return fmt.Errorf("%s is a multicast address", ip)
	case ip.IsLinkLocalUnicast():
		return fmt.Errorf("%s is a link-local address", ip)
	case ip.IsUnspecified():
		return fmt.Errorf("%s is the unspecified address", ip)
	}
	addrs, err := n.interfaceAddrs()
	if err != nil {
		return fmt.Errorf("list interface addresses: %w", err)
	}
	for _, a := range addrs {
		if own, ok := a.(*net.IPNet); ok && own.IP.Equal(ip) {
			return nil
		}
	}
	return fmt.Errorf("no interface has address %s", ip)
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

// hostIPs returns the addresses of pods on the host network.
func hostIPs(addresses []v1.NodeAddress) []net.IP {
	var ips []net.IP
	for _, a := range addresses {
		if ip := net.ParseIP(a.Address); ip != nil && a.Type == v1.NodeInternalIP {
			ips = append(ips, ip)
		}
	}
	return ips
}
