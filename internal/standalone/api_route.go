package standalone

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Client libraries call the API server at the address of the Service kubernetes, the first of the service CIDR, port
// 443. The service proxy leaves this Service alone, as it is not there as long as there are no others: connections of
// pods are led to the API server on the pod bridge, those of this machine to loopback.

// serviceCIDR is that of cluster IPs.
var serviceCIDR = netip.MustParsePrefix("10.89.0.0/16")

// apiService is the address of the Service kubernetes.
func apiService() string { return serviceCIDR.Addr().Next().String() }

// bridgeAddress is the address of the pod bridge: the first of the pod network.
func (c Config) bridgeAddress() string { return c.PodCIDR.Masked().Addr().Next().String() }

// routeAPI leads pods and this machine to the API server, if there is one. It is idempotent.
func routeAPI(ctx context.Context, cfg Config, backend string) error {
	if cfg.API == nil {
		return nil
	}
	target, local := cfg.bridgeAddress()+":"+strconv.Itoa(cfg.API.Port), cfg.API.address()
	var err error
	if backend == backendNftables {
		err = runWithInput(ctx, `add table `+localnetTable+`
add chain `+localnetTable+` api { type nat hook prerouting priority -100; policy accept; }
flush chain `+localnetTable+` api
add rule `+localnetTable+` api iifname "`+bridgeName+`" ip daddr `+apiService()+` tcp dport 443 dnat to `+target+`
add chain `+localnetTable+` api-local { type nat hook output priority -100; policy accept; }
flush chain `+localnetTable+` api-local
add rule `+localnetTable+` api-local ip daddr `+apiService()+` tcp dport 443 dnat to `+local+"\n", "nft", "-f", "-")
	} else if err = removeAPIRoute(ctx); err == nil { // its target may have been another
		toAPI := []string{"-d", apiService() + "/32", "-p", "tcp", "-m", "tcp", "--dport", "443", "-j", "DNAT", "--to-destination"}
		err = errors.Join(natTable(ctx, append(append([]string{"-A", "PREROUTING", "-i", bridgeName}, toAPI...), target)...),
			natTable(ctx, append(append([]string{"-A", "OUTPUT"}, toAPI...), local)...))
	}
	if err != nil {
		return fmt.Errorf("lead connections to the API server: %w", err)
	}
	return nil
}

// removeAPIRoute removes the rules of iptables; cleanTables removes the nftables table.
func removeAPIRoute(ctx context.Context) error {
	var problems []error
	for line := range strings.Lines(listNATRules(ctx)) {
		rule := strings.TrimSpace(line)
		if strings.HasPrefix(rule, "-A PREROUTING -d "+apiService()+"/32 -i "+bridgeName+" ") || strings.HasPrefix(rule, "-A OUTPUT -d "+apiService()+"/32 ") {
			problems = append(problems, natTable(ctx, append([]string{"-D"}, strings.Fields(rule)[1:]...)...))
		}
	}
	return errors.Join(problems...)
}

func natTable(ctx context.Context, args ...string) error {
	return runHostProgram(ctx, "iptables", append([]string{"-w", "5", "-t", "nat"}, args...)...)
}
