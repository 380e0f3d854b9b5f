package standalone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cniCache is where the CNI library records what it set up; the path is fixed there.
const cniCache = "/var/lib/cni"

// pluginTables are the nftables tables of the bridge and portmap plugins, proxyTables those of kube-proxy and
// iptablesTables those that iptables creates on its first call.
var (
	pluginTables   = []string{"inet cni_plugins_masquerade", "ip cni_hostport", "ip6 cni_hostport"}
	proxyTables    = []string{"ip kube-proxy", "ip6 kube-proxy"} // of the service proxy
	iptablesTables = []string{"ip nat", "ip6 nat", "ip filter", "ip6 filter", "ip mangle", "ip6 mangle", "ip raw"}
)

// cleanNetwork removes the bridge, the interfaces on it, and the packet filter's rules.
func cleanNetwork(pods netip.Prefix, p Paths) error {
	saved, err := readHostState(p.hostState())
	if err != nil {
		return errors.Join(err, removeLinks()) // without the saved state, we cannot distinguish our rules from those of others
	}
	return errors.Join(removeLinks(), cleanChains(pods, saved), removeLocalnetRules(), removeAPIRoute(context.Background()), cleanTables(pods, saved), restoreForwarding(saved), cleanCache(p.run, saved))
}

// removeLinks deletes the bridge and every link that a killed pod left on it.
func removeLinks() error {
	ports, err := filepath.Glob("/sys/class/net/" + bridgeName + "/brif/*")
	if err != nil {
		return fmt.Errorf("list the bridge's ports: %w", err)
	}
	var problems []error
	for _, name := range append(ports, bridgeName) {
		link, err := net.InterfaceByName(filepath.Base(name))
		if err != nil {
			continue // already deleted
		}
		if err := deleteLink(link.Index); err != nil {
			problems = append(problems, fmt.Errorf("remove interface %s: %w", link.Name, err))
		}
	}
	return errors.Join(problems...)
}

// listNftTables lists the nftables tables that exist, as "family name".
func listNftTables() []string {
	out, err := readHostProgram(context.Background(), "nft", "list", "tables")
	if err != nil {
		return nil // no nft: the plugins use none either
	}
	var found []string
	for line := range strings.Lines(out) {
		found = append(found, strings.TrimPrefix(strings.TrimSpace(line), "table "))
	}
	return found
}

func cleanTables(pods netip.Prefix, saved hostState) error {
	var script strings.Builder
	for _, table := range listNftTables() {
		preexisting := slices.Contains(saved.Tables, table)
		if table == localnetTable || slices.Contains(proxyTables, table) && !preexisting {
			script.WriteString("delete table " + table + "\n")
			continue
		}
		plugin := slices.Contains(pluginTables, table)
		if !plugin && (preexisting || !slices.Contains(iptablesTables, table)) {
			continue
		}
		listing, err := readHostProgram(context.Background(), "nft", append([]string{"-a", "list", "table"}, strings.Fields(table)...)...)
		if err != nil {
			return fmt.Errorf("list table %s: %w", table, err)
		}
		if plugin {
			script.WriteString(tableCleanupScript(table, listing, pods, preexisting))
		} else if tableEmpty(listing) {
			script.WriteString("delete table " + table + "\n")
		}
	}
	return applyScript(script.String(), "nft", "-f", "-")
}

func listNATChains() []string {
	var chains []string
	for line := range strings.Lines(listNATRules(context.Background())) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "-N "); ok && strings.HasPrefix(name, "CNI-") {
			chains = append(chains, name)
		}
	}
	return chains
}

// listNATRules returns nothing if iptables is not installed: then it has no rules either.
func listNATRules(ctx context.Context) string {
	out, err := readHostProgram(ctx, "iptables", "-w", "5", "-t", "nat", "-S")
	if err != nil {
		return ""
	}
	return out
}

func cleanChains(pods netip.Prefix, saved hostState) error {
	return applyScript(chainCleanupScript(listNATRules(context.Background()), pods, saved.Chains), "iptables-restore", "-w", "5", "--noflush")
}

func applyScript(script, program string, args ...string) error {
	if script == "" {
		return nil
	}
	return runWithInput(context.Background(), script, program, args...)
}

// restoreForwarding turns IP forwarding off again if it was off before the bridge plugin
// turned it on.
func restoreForwarding(saved hostState) error {
	if saved.Forwarding != "0" {
		return nil
	}
	if err := os.WriteFile(ipForwardFile, []byte("0"), 0o644); err != nil {
		return fmt.Errorf("restore ip_forward: %w", err)
	}
	return nil
}

// cleanCache removes what the CNI library recorded about our network namespaces, and its
// directories if we created them. rmdir fails while other files are in them.
func cleanCache(run string, saved hostState) error {
	results, _ := filepath.Glob(filepath.Join(cniCache, "results", "*"))
	for _, file := range results {
		content, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(content), run+"/") {
			continue
		}
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("clean the CNI cache: %w", err)
		}
	}
	_ = os.Remove(filepath.Join(cniCache, "results")) // succeeds only if it is empty
	if !saved.CNICache {
		_ = os.Remove(cniCache)
	}
	return nil
}
