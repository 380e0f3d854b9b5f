package standalone

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// cniCache is where the CNI library notes what it set up; its place cannot be chosen.
const cniCache = "/var/lib/cni"

// pluginTables are the nftables tables of the bridge and portmap plugins; iptablesTables
// those that iptables makes as soon as a plugin asks it anything.
var (
	pluginTables   = []string{"inet cni_plugins_masquerade", "ip cni_hostport", "ip6 cni_hostport"}
	iptablesTables = []string{"ip nat", "ip6 nat", "ip filter", "ip6 filter", "ip mangle", "ip6 mangle", "ip raw"}
)

// cleanNetwork takes away the bridge, what hangs on it, and the packet filter's rules.
func cleanNetwork(pods netip.Prefix, p Places) error {
	was, err := readBefore(p.before())
	if err != nil {
		return errors.Join(err, removeLinks()) // without it nobody can tell whose rules are whose
	}
	return errors.Join(removeLinks(), cleanChains(pods, was), removeLocalnetRules(), cleanTables(pods, was), restoreForwarding(was), cleanCache(p.run, was))
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
			continue // gone already
		}
		if err := deleteLink(link.Index); err != nil {
			problems = append(problems, fmt.Errorf("remove interface %s: %w", link.Name, err))
		}
	}
	return errors.Join(problems...)
}

// filterTables lists the nftables tables that exist, as "family name".
func filterTables() []string {
	out, err := exec.Command("nft", "list", "tables").Output()
	if err != nil {
		return nil // no nft: the plugins use none either
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		found = append(found, strings.TrimPrefix(strings.TrimSpace(line), "table "))
	}
	return found
}

func cleanTables(pods netip.Prefix, was before) error {
	var script strings.Builder
	for _, table := range filterTables() {
		if table == localnetTable {
			script.WriteString("delete table " + table + "\n")
			continue
		}
		plugin, wasThere := slices.Contains(pluginTables, table), slices.Contains(was.Tables, table)
		if !plugin && (wasThere || !slices.Contains(iptablesTables, table)) {
			continue
		}
		listing, err := exec.Command("nft", append([]string{"-a", "list", "table"}, strings.Fields(table)...)...).Output()
		if err != nil {
			return fmt.Errorf("list table %s: %w", table, err)
		}
		if plugin {
			script.WriteString(tableCleanup(table, string(listing), pods, wasThere))
		} else if tableEmpty(string(listing)) {
			script.WriteString("delete table " + table + "\n")
		}
	}
	return feed(script.String(), "nft", "-f", "-")
}

func natChains() []string {
	var chains []string
	for line := range strings.Lines(natListing()) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "-N "); ok && strings.HasPrefix(name, "CNI-") {
			chains = append(chains, name)
		}
	}
	return chains
}

// natListing is empty where there is no iptables: then there are no rules of it either.
func natListing() string {
	out, err := exec.Command("iptables", "-w", "5", "-t", "nat", "-S").Output()
	if err != nil {
		return ""
	}
	return string(out)
}

func cleanChains(pods netip.Prefix, was before) error {
	return feed(chainCleanup(natListing(), pods, was.Chains), "iptables-restore", "-w", "5", "--noflush")
}

func feed(script, program string, args ...string) error {
	if script == "" {
		return nil
	}
	command := exec.Command(program, args...)
	command.Stdin = strings.NewReader(script)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// restoreForwarding undoes what the bridge plugin switches on: a machine that did not
// route for others must not be left doing so.
func restoreForwarding(was before) error {
	if was.Forwarding != "0" {
		return nil
	}
	if err := os.WriteFile(forwardingSwitch, []byte("0"), 0o644); err != nil {
		return fmt.Errorf("restore ip_forward: %w", err)
	}
	return nil
}

// cleanCache removes what the CNI library noted of our network namespaces, and its
// folders where we caused them; rmdir spares what others keep there.
func cleanCache(run string, was before) error {
	notes, _ := filepath.Glob(filepath.Join(cniCache, "results", "*"))
	for _, file := range notes {
		content, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(content), run+"/") {
			continue
		}
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("clean the CNI cache: %w", err)
		}
	}
	_ = os.Remove(filepath.Join(cniCache, "results")) // goes only if it is empty
	if !was.CNICache {
		_ = os.Remove(cniCache)
	}
	return nil
}
