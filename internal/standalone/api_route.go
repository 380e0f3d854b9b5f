package standalone

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/clip"
)

// Client libraries in pods call the API server at the address of the Service kubernetes, the first of the service
// CIDR, port 443. There is no proxy for Services; this one connection is led to the API server on the pod bridge.

// serviceCIDR is that of cluster IPs.
var serviceCIDR = netip.MustParsePrefix("10.89.0.0/16")

// apiService is the address of the Service kubernetes.
func apiService() string { return serviceCIDR.Addr().Next().String() }

// bridgeAddress is the address of the pod bridge: the first of the pod network.
func (c Config) bridgeAddress() string { return c.PodCIDR.Masked().Addr().Next().String() }

// routeAPI leads pods to the API server, if there is one. It is idempotent.
func routeAPI(cfg Config, backend string) error {
	if cfg.API == nil {
		return nil
	}
	target := cfg.bridgeAddress() + ":" + strconv.Itoa(cfg.API.Port)
	var err error
	if backend == backendNftables {
		err = runWithInput(`add table `+localnetTable+`
add chain `+localnetTable+` api { type nat hook prerouting priority -100; policy accept; }
flush chain `+localnetTable+` api
add rule `+localnetTable+` api iifname "`+bridgeName+`" ip daddr `+apiService()+` tcp dport 443 dnat to `+target+"\n", "nft", "-f", "-")
	} else if err = removeAPIRoute(); err == nil { // its target may have been another
		err = natTable("-A", "PREROUTING", "-i", bridgeName, "-d", apiService()+"/32", "-p", "tcp", "-m", "tcp", "--dport", "443", "-j", "DNAT", "--to-destination", target)
	}
	if err != nil {
		return fmt.Errorf("lead pods to the API server: %w", err)
	}
	return nil
}

// removeAPIRoute removes the rule of iptables; cleanTables removes the nftables table.
func removeAPIRoute() error {
	var problems []error
	for line := range strings.Lines(listNATRules()) {
		if rule, ours := strings.CutPrefix(strings.TrimSpace(line), "-A PREROUTING -d "+apiService()+"/32 -i "+bridgeName+" "); ours {
			problems = append(problems, natTable(append([]string{"-D", "PREROUTING", "-d", apiService() + "/32", "-i", bridgeName}, strings.Fields(rule)...)...))
		}
	}
	return errors.Join(problems...)
}

func natTable(args ...string) error {
	out, err := boundedio.CombinedOutput(exec.Command("iptables", append([]string{"-w", "5", "-t", "nat"}, args...)...), clip.Message)
	if err != nil {
		return fmt.Errorf("iptables %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
