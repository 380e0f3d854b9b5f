package node

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeNetwork has the machine at the given addresses.
func fakeNetwork(own []string, dns map[string][]string, route string) network {
	return network{
		lookup: func(_ context.Context, host string) ([]net.IP, error) {
			return ips(dns[host]...), nil
		},
		own: func() ([]net.Addr, error) {
			var all []net.Addr
			for _, ip := range ips(own...) {
				all = append(all, &net.IPNet{IP: ip})
			}
			return all, nil
		},
		byRoute: func(net.IP) (net.IP, error) {
			if route == "" {
				return nil, errors.New("no default route")
			}
			return net.ParseIP(route), nil
		},
	}
}

func ips(text ...string) []net.IP {
	var all []net.IP
	for _, t := range text {
		all = append(all, net.ParseIP(t))
	}
	return all
}

func TestAddresses(t *testing.T) {
	own := []string{"127.0.0.1", "192.0.2.2", "192.0.2.3", "2001:db8::2"}
	both := map[string][]string{"node-1": {"203.0.113.9", "2001:db8::2", "192.0.2.3"}}
	for name, c := range map[string]struct {
		dns      map[string][]string
		route    string
		hostname string
		given    []net.IP
		want     []string // IPs; none is an error
	}{
		"default route":                 {nil, "192.0.2.2", "node-1", nil, []string{"192.0.2.2"}},
		"name that is ours, IPv4 first": {both, "192.0.2.2", "node-1", nil, []string{"192.0.2.3"}},
		"IPv6 first if asked":           {both, "192.0.2.2", "node-1", ips("::"), []string{"2001:db8::2"}},
		"other family rather than none": {map[string][]string{"node-1": {"2001:db8::2"}}, "192.0.2.2", "node-1", nil, []string{"2001:db8::2"}},
		"name of another machine":       {map[string][]string{"node-1": {"203.0.113.9", "127.0.0.1"}}, "192.0.2.2", "node-1", nil, []string{"192.0.2.2"}},
		"host name is an address":       {nil, "192.0.2.2", "198.51.100.1", nil, []string{"198.51.100.1"}},
		"given":                         {both, "192.0.2.2", "node-1", ips("192.0.2.2"), []string{"192.0.2.2"}},
		"given two":                     {both, "192.0.2.2", "node-1", ips("2001:db8::2", "192.0.2.3"), []string{"2001:db8::2", "192.0.2.3"}},
		"given one and an open one":     {both, "192.0.2.2", "node-1", ips("192.0.2.2", "::"), []string{"192.0.2.2"}},
		"given an open one and one":     {nil, "192.0.2.2", "node-1", ips("0.0.0.0", "2001:db8::2"), []string{"192.0.2.2"}},
		"given of another machine":      {nil, "192.0.2.2", "node-1", ips("203.0.113.9"), nil},
		"given loopback":                {nil, "192.0.2.2", "node-1", ips("127.0.0.1"), nil},
		"no name, no route":             {nil, "", "node-1", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := fakeNetwork(own, c.dns, c.route)
			got, err := n.addresses(t.Context(), "node-1", c.hostname, c.given)
			if (err != nil) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				return
			}
			if last := got[len(got)-1]; last.Type != "Hostname" || last.Address != c.hostname {
				t.Errorf("host name is %+v", last)
			}
			if diff := cmp.Diff(ips(c.want...), hostIPs(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
