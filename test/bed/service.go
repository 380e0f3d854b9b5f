package bed

import (
	"context"
	"strings"
)

// serviceAddress is the first of serviceCIDR: every pod's KUBERNETES_SERVICE_HOST.
const serviceAddress = "10.96.0.1"

// RouteAPIService adds DNAT rules for the service "kubernetes" on the node. A bed has no
// kube-proxy, so no other service is reachable.
func (b *Box) RouteAPIService(ctx context.Context) error {
	to := strings.TrimPrefix(b.bed.ControlPlane.Server, "https://")
	for _, chain := range []string{"PREROUTING", "OUTPUT"} {
		if _, err := b.Exec(ctx, "iptables", "-w", "-t", "nat", "-A", chain, "-d", serviceAddress,
			"-p", "tcp", "--dport", "443", "-j", "DNAT", "--to-destination", to); err != nil {
			return err
		}
	}
	return nil
}
