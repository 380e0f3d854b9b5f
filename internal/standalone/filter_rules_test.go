package standalone

import (
	"net/netip"
	"testing"
)

var testPods = netip.MustParsePrefix("10.88.0.0/16")

const (
	sharedTable = `table inet cni_plugins_masquerade { # handle 1
	comment "Masquerading for plugins from github.com/containernetworking/plugins"
	chain masq_checks { # handle 1
		comment "Masquerade traffic from certain IPs"
		ip saddr 10.88.0.5 ip daddr != 10.88.0.0/16 masquerade comment "ab, net: swiftlet, if: eth0, id: 11" # handle 3
		ip saddr 10.5.0.5 ip daddr != 10.5.0.0/16 masquerade comment "cd, net: other, if: eth0, id: 12" # handle 4
	}

	chain postrouting { # handle 2
		type nat hook postrouting priority srcnat; policy accept;
		ip daddr 224.0.0.0/4 return # handle 5
		goto masq_checks # handle 6
	}
}
`
	ownTable = `table ip cni_hostport { # handle 1
	comment "CNI portmap plugin"
	chain hostports { # handle 1
		tcp dport 8080 dnat to 10.88.0.2:8080 comment "aa" # handle 9
	}

	chain output { # handle 5
		type nat hook output priority dstnat; policy accept;
		fib daddr type local jump hostports_all # handle 8
	}
}
`
)

func TestTableCleanupScript(t *testing.T) {
	for name, c := range map[string]struct {
		listing     string
		preexisting bool
		want        string
	}{
		"new table with only our rules is deleted":   {ownTable, false, "delete table T\n"},
		"preexisting table loses only our rules":     {ownTable, true, "delete rule T hostports handle 9\n"},
		"table with rules of others loses only ours": {sharedTable, false, "delete rule T masq_checks handle 3\n"},
		"preexisting empty table is kept":            {"table T {\n}\n", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tableCleanupScript("T", c.listing, testPods, c.preexisting); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

const natRules = `-P PREROUTING ACCEPT
-N CNI-HOSTPORT-DNAT
-N CNI-HOSTPORT-MASQ
-N CNI-HOSTPORT-SETMARK
-N CNI-DN-aaaa
-N CNI-bbbb
-N DOCKER
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ
-A POSTROUTING -s 10.88.0.2/32 -m comment --comment "name: \"swiftlet\" id: \"1\"" -j CNI-bbbb
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"swiftlet\" id: \"1\"" -m multiport --dports 8080 -j CNI-DN-aaaa
-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE
-A CNI-DN-aaaa -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.88.0.2:8080
-A CNI-bbbb ! -d 224.0.0.0/4 -m comment --comment "name: \"swiftlet\" id: \"1\"" -j MASQUERADE
`

func TestChainCleanupScript(t *testing.T) {
	const withOtherPod = natRules + "-N CNI-DN-cccc\n" +
		"-A CNI-HOSTPORT-DNAT -p tcp -m multiport --dports 9090 -j CNI-DN-cccc\n" +
		"-A CNI-DN-cccc -p tcp -m tcp --dport 9090 -j DNAT --to-destination 10.5.0.2:80\n"
	const pods = `-D POSTROUTING -s 10.88.0.2/32 -m comment --comment "name: \"swiftlet\" id: \"1\"" -j CNI-bbbb
`
	for name, c := range map[string]struct {
		listing     string
		preexisting []string
		want        string
	}{
		"no chains of the plugins": {"-P PREROUTING ACCEPT\n-N DOCKER\n-A PREROUTING -j DOCKER\n", nil, ""},
		"pod chains and shared chains are deleted": {natRules, nil, `*nat
-D PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-D POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ
` + pods + `-F CNI-bbbb
-F CNI-DN-aaaa
-F CNI-HOSTPORT-DNAT
-F CNI-HOSTPORT-MASQ
-F CNI-HOSTPORT-SETMARK
-X CNI-bbbb
-X CNI-DN-aaaa
-X CNI-HOSTPORT-DNAT
-X CNI-HOSTPORT-MASQ
-X CNI-HOSTPORT-SETMARK
COMMIT
`},
		"shared chains in use by another program are kept": {withOtherPod, nil, `*nat
` + pods + `-D CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"swiftlet\" id: \"1\"" -m multiport --dports 8080 -j CNI-DN-aaaa
-F CNI-bbbb
-F CNI-DN-aaaa
-X CNI-bbbb
-X CNI-DN-aaaa
COMMIT
`},
		"preexisting shared chains are kept": {natRules, []string{"CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-MASQ", "CNI-HOSTPORT-SETMARK"}, `*nat
` + pods + `-D CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"swiftlet\" id: \"1\"" -m multiport --dports 8080 -j CNI-DN-aaaa
-F CNI-bbbb
-F CNI-DN-aaaa
-X CNI-bbbb
-X CNI-DN-aaaa
COMMIT
`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := chainCleanupScript(c.listing, testPods, c.preexisting); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestTableEmpty(t *testing.T) {
	for listing, want := range map[string]bool{
		"table ip nat { # handle 1\n}\n": true,
		"table ip nat {\n\tchain OUTPUT { # handle 1\n\t\ttype nat hook output priority dstnat; policy accept;\n\t}\n}\n":              true,
		"table ip filter {\n\tchain INPUT {\n\t\ttype filter hook input priority filter; policy drop;\n\t}\n}\n":                       false,
		"table ip nat {\n\tchain DOCKER {\n\t}\n}\n":                                                                                   false,
		"table ip nat {\n\tchain OUTPUT {\n\t\ttype nat hook output priority dstnat; policy accept;\n\t\tcounter # handle 2\n\t}\n}\n": false,
	} {
		if got := tableEmpty(listing); got != want {
			t.Errorf("%v for:\n%s", got, listing)
		}
	}
}
