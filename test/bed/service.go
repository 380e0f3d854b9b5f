package bed

import (
	"context"
	"strings"
)

// serviceAddress is the first of serviceCIDR: every pod's KUBERNETES_SERVICE_HOST.
const serviceAddress = "10.96.0.1"

// LeadToAPI makes the API server's service reachable from the node and its pods. It is the one
// service of the bed, which has no kube-proxy.
func (b *Box) LeadToAPI(ctx context.Context) error {
	to := strings.TrimPrefix(b.bed.ControlPlane.Server, "https://")
	for _, chain := range []string{"PREROUTING", "OUTPUT"} {
		if _, err := b.Exec(ctx, "iptables", "-w", "-t", "nat", "-A", chain, "-d", serviceAddress,
			"-p", "tcp", "--dport", "443", "-j", "DNAT", "--to-destination", to); err != nil {
			return err
		}
	}
	return nil
}
