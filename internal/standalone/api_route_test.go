package standalone

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"
)

// The packet filter has one rule for pods and one for this machine, of the last configuration, until they are removed.
func TestAPIRoute(t *testing.T) {
	if !box(t) {
		return
	}
	for backend, list := range map[string]string{backendNftables: "nft list ruleset", backendIptables: "iptables -t nat -S"} {
		t.Run(backend, func(t *testing.T) {
			rules := func() []string {
				out, err := exec.Command("sh", "-c", list).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				var found []string
				for line := range strings.Lines(string(out)) {
					if strings.Contains(line, "10.89.0.1") {
						found = append(found, line)
					}
				}
				return found
			}
			cfg := Config{PodCIDR: netip.MustParsePrefix("10.88.0.0/16")}
			if err := routeAPI(t.Context(), cfg, backend); err != nil || len(rules()) != 0 {
				t.Errorf("without an API server: %v, rules %q", err, rules())
			}
			for _, port := range []int{6443, 6443, 7443} {
				cfg.API = &APIConfig{Port: port}
				if err := routeAPI(t.Context(), cfg, backend); err != nil {
					t.Fatal(err)
				}
			}
			if got := rules(); len(got) != 2 || !strings.Contains(got[0], "10.88.0.1:7443") || !strings.Contains(got[1], "127.0.0.1:7443") {
				t.Errorf("got %q, want a rule to 10.88.0.1:7443 and one to 127.0.0.1:7443", got)
			}
			clean := func() error { return removeAPIRoute(t.Context()) }
			if backend == backendNftables {
				clean = func() error { return cleanTables(cfg.PodCIDR, hostState{}) }
			}
			if err := clean(); err != nil || len(rules()) != 0 {
				t.Errorf("remove: %v, left %q", err, rules())
			}
		})
	}
}
