package certificate

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestServingTemplate(t *testing.T) {
	address := func(kind v1.NodeAddressType, text string) v1.NodeAddress {
		return v1.NodeAddress{Type: kind, Address: text}
	}
	for name, c := range map[string]struct {
		addresses []v1.NodeAddress
		dnsOnly   bool
		want      string
	}{
		"no_addresses": {nil, true, "none"},
		"host_name_only_and_dns_only_not_allowed": {[]v1.NodeAddress{address(v1.NodeHostName, "n")}, false, "none"},
		"host_name_only_and_dns_only_allowed": {[]v1.NodeAddress{address(v1.NodeHostName, "n")}, true,
			"[n] []"},
		"ip_address_and_host_name": {[]v1.NodeAddress{address(v1.NodeInternalIP, "10.0.0.2"), address(v1.NodeHostName, "n")}, false,
			"[n] [10.0.0.2]"},
		"addresses_are_sorted_and_deduplicated": {[]v1.NodeAddress{
			address(v1.NodeInternalIP, "10.0.0.2"), address(v1.NodeInternalIP, "fd00::1"), address(v1.NodeExternalIP, "10.0.0.1"),
			address(v1.NodeExternalIP, "10.0.0.2"), address(v1.NodeInternalDNS, "z"), address(v1.NodeExternalDNS, "a"), address(v1.NodeHostName, "z"),
		}, false, "[a z] [10.0.0.1 10.0.0.2 fd00::1]"},
		"host_name_is_an_ip_address": {[]v1.NodeAddress{address(v1.NodeHostName, "10.0.0.2")}, false, "[] [10.0.0.2]"},
		"invalid_and_unknown_addresses_are_ignored": {[]v1.NodeAddress{address(v1.NodeInternalIP, "n"), address(v1.NodeInternalIP, ""), address("Other", "10.0.0.3")}, true,
			"none"},
	} {
		t.Run(name, func(t *testing.T) {
			got := "none"
			if r := ServingTemplate("n", c.addresses, c.dnsOnly); r != nil {
				got = fmt.Sprintf("%v %v", r.DNSNames, r.IPAddresses)
				if r.Subject.String() != "CN=system:node:n,O=system:nodes" {
					t.Errorf("subject is %s", r.Subject)
				}
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
