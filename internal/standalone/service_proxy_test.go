package standalone

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestDecideProxy: the proxy is not started where it would share its table with another one.
func TestDecideProxy(t *testing.T) {
	for name, row := range map[string]struct {
		api    bool
		filter string
		tables []string
		proxy  bool
		says   string
	}{
		"no_api":             {false, backendNftables, nil, false, ""},
		"nftables":           {true, backendNftables, []string{"ip nat", "inet kube-proxy"}, true, ""},
		"iptables":           {true, backendIptables, nil, false, "nothing leads to Services: nft is not installed"},
		"another_kube_proxy": {true, backendNftables, []string{"ip kube-proxy"}, false, "nothing leads to Services: a kube-proxy of another cluster is on this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := &Supervisor{cfg: Config{Paths: Paths{root: t.TempDir(), run: t.TempDir(), bundle: "/b"}}, deps: Deps{Out: &out}}
			if row.api {
				s.cfg.API = &APIConfig{}
			}
			content, err := json.Marshal(hostState{Tables: row.tables})
			if err == nil {
				err = os.WriteFile(s.cfg.Paths.hostState(), content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := s.decideProxy(row.filter); err != nil {
				t.Fatal(err)
			}
			if s.cfg.proxyServices != row.proxy || !strings.Contains(out.String(), row.says) || (row.says == "") != (out.Len() == 0) {
				t.Errorf("proxy %t, output %q", s.cfg.proxyServices, out.String())
			}
		})
	}
}

// TestCleanTablesOfKubeProxy: the tables of kube-proxy are removed, unless another one has made them.
func TestCleanTablesOfKubeProxy(t *testing.T) {
	if !box(t) {
		return
	}
	for _, others := range [][]string{nil, {"ip kube-proxy"}} {
		for _, table := range proxyTables {
			if out, err := exec.Command("sh", "-c", "nft add table "+table+" && nft add chain "+table+" services").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		if err := cleanTables(netip.MustParsePrefix("10.88.0.0/16"), hostState{Tables: others}); err != nil {
			t.Fatal(err)
		}
		if got := listNftTables(); !slices.Equal(got, others) {
			t.Errorf("left %v, want %v", got, others)
		}
	}
}
