package standalone

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
)

const (
	bridgeName  = "swiftlet0"
	networkName = "swiftlet"
)

// The packet filters that the CNI plugins support.
const (
	backendNftables = "nftables"
	backendIptables = "iptables"
)

// filterBackend chooses the packet filter for the CNI plugins. nftables is preferred: the
// plugins use tables of their own there, which can be removed as a whole.
func filterBackend(lookPath func(string) (string, error)) (string, error) {
	for _, c := range []struct{ program, backend string }{{"nft", backendNftables}, {"iptables", backendIptables}} {
		if _, err := lookPath(c.program); err == nil {
			return c.backend, nil
		}
	}
	return "", fmt.Errorf("find a packet filter: neither nft nor iptables is installed; install the package nftables or iptables: %w", exec.ErrNotFound)
}

// networkConfig is the CNI configuration of the pod network: a bridge with addresses of the
// CIDR pods, masquerading, and host ports.
func networkConfig(pods netip.Prefix, addresses, backend string) ([]byte, error) {
	config := map[string]any{
		"cniVersion": "1.0.0",
		"name":       networkName,
		"plugins": []map[string]any{{
			"type": "bridge", "bridge": bridgeName,
			"isGateway": true, "hairpinMode": true,
			"ipMasq": true, "ipMasqBackend": backend,
			"ipam": map[string]any{
				"type":    "host-local",
				"dataDir": addresses, // in the run directory: a reboot frees all addresses
				"ranges":  [][]map[string]any{{{"subnet": pods.Masked().String()}}},
				"routes":  []map[string]any{{"dst": "0.0.0.0/0"}},
			},
		}, {
			"type": "portmap", "backend": backend, "snat": true,
			"capabilities": map[string]any{"portMappings": true},
		}},
	}
	out, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render network configuration: %w", err)
	}
	return append(out, '\n'), nil
}

func (p Paths) networkFile() string { return filepath.Join(p.networkConf(), "10-swiftlet.conflist") }
