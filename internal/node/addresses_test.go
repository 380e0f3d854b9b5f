package node

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeNetwork is a machine whose interfaces have the given addresses.
func fakeNetwork(own []string, dns map[string][]string, route string) network {
	return network{
		lookup: func(_ context.Context, host string) ([]net.IP, error) {
			return ips(dns[host]...), nil
		},
		interfaceAddrs: func() ([]net.Addr, error) {
			var all []net.Addr
			for _, ip := range ips(own...) {
				all = append(all, &net.IPNet{IP: ip})
			}
			return all, nil
		},
		defaultRouteIP: func(net.IP) (net.IP, error) {
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
		want     []string // IPs; nil means an error
	}{
		"falls_back_to_default_route":                {nil, "192.0.2.2", "node-1", nil, []string{"192.0.2.2"}},
		"node_name_resolves_to_own_IPs_prefers_IPv4": {both, "192.0.2.2", "node-1", nil, []string{"192.0.2.3"}},
		"node_ip_::_prefers_IPv6":                    {both, "192.0.2.2", "node-1", ips("::"), []string{"2001:db8::2"}},
		"node_name_resolves_to_IPv6_only":            {map[string][]string{"node-1": {"2001:db8::2"}}, "192.0.2.2", "node-1", nil, []string{"2001:db8::2"}},
		"node_name_resolves_to_another_machine":      {map[string][]string{"node-1": {"203.0.113.9", "127.0.0.1"}}, "192.0.2.2", "node-1", nil, []string{"192.0.2.2"}},
		"host_name_is_an_IP":                         {nil, "192.0.2.2", "198.51.100.1", nil, []string{"198.51.100.1"}},
		"node_ip_is_local":                           {both, "192.0.2.2", "node-1", ips("192.0.2.2"), []string{"192.0.2.2"}},
		"two_node_ips_are_local":                     {both, "192.0.2.2", "node-1", ips("2001:db8::2", "192.0.2.3"), []string{"2001:db8::2", "192.0.2.3"}},
		"node_ip_then_unspecified":                   {both, "192.0.2.2", "node-1", ips("192.0.2.2", "::"), []string{"192.0.2.2"}},
		"unspecified_then_node_ip":                   {nil, "192.0.2.2", "node-1", ips("0.0.0.0", "2001:db8::2"), []string{"192.0.2.2"}},
		"node_ip_of_another_machine_fails":           {nil, "192.0.2.2", "node-1", ips("203.0.113.9"), nil},
		"node_ip_is_loopback_fails":                  {nil, "192.0.2.2", "node-1", ips("127.0.0.1"), nil},
		"no_DNS_and_no_default_route_fails":          {nil, "", "node-1", nil, nil},
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
