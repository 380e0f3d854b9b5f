package certificate

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestServingRequest(t *testing.T) {
	address := func(kind v1.NodeAddressType, text string) v1.NodeAddress {
		return v1.NodeAddress{Type: kind, Address: text}
	}
	for name, c := range map[string]struct {
		addresses []v1.NodeAddress
		dnsOnly   bool
		want      string
	}{
		"none":      {nil, true, "none"},
		"only name": {[]v1.NodeAddress{address(v1.NodeHostName, "n")}, false, "none"},
		"only name, allowed": {[]v1.NodeAddress{address(v1.NodeHostName, "n")}, true,
			"[n] []"},
		"usual": {[]v1.NodeAddress{address(v1.NodeInternalIP, "10.0.0.2"), address(v1.NodeHostName, "n")}, false,
			"[n] [10.0.0.2]"},
		"sorted, each once": {[]v1.NodeAddress{
			address(v1.NodeInternalIP, "10.0.0.2"), address(v1.NodeInternalIP, "fd00::1"), address(v1.NodeExternalIP, "10.0.0.1"),
			address(v1.NodeExternalIP, "10.0.0.2"), address(v1.NodeInternalDNS, "z"), address(v1.NodeExternalDNS, "a"), address(v1.NodeHostName, "z"),
		}, false, "[a z] [10.0.0.1 10.0.0.2 fd00::1]"},
		"host name that is an address": {[]v1.NodeAddress{address(v1.NodeHostName, "10.0.0.2")}, false, "[] [10.0.0.2]"},
		"what cannot be an address": {[]v1.NodeAddress{address(v1.NodeInternalIP, "n"), address(v1.NodeInternalIP, ""), address("Other", "10.0.0.3")}, true,
			"none"},
	} {
		got := "none"
		if r := ServingRequest("n", c.addresses, c.dnsOnly); r != nil {
			got = fmt.Sprintf("%v %v", r.DNSNames, r.IPAddresses)
			if r.Subject.String() != "CN=system:node:n,O=system:nodes" {
				t.Errorf("%s: made out to %s", name, r.Subject)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
