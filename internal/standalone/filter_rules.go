package standalone

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// The CNI plugins never remove the tables and chains that pods share, and leave a pod's rules
// behind if its CNI DEL was never called. The functions here turn a listing of rules into a
// script that removes ours. A rule is ours if it contains an address of the pod network.

var (
	addressPattern = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`)
	handlePattern  = regexp.MustCompile(`# handle (\d+)$`)
)

func hasPodAddress(rule string, pods netip.Prefix) bool {
	return slices.ContainsFunc(addressPattern.FindAllString(rule, -1), func(s string) bool {
		address, err := netip.ParseAddr(s)
		return err == nil && pods.Contains(address)
	})
}

// tableCleanupScript reads `nft -a list table` of a table of the plugins. The script deletes
// the table if Swiftlet caused it and it has only our rules, else only our rules.
func tableCleanupScript(table, listing string, pods netip.Prefix, preexisting bool) (script string) {
	var ours []string
	others, chain := 0, ""
	for line := range strings.Lines(listing) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "chain "); ok {
			chain, _, _ = strings.Cut(name, " ")
			continue
		}
		// The rules of a pod have a comment with its ID; the fixed rules have none.
		if strings.HasPrefix(line, "comment ") || !strings.Contains(line, ` comment "`) {
			continue
		}
		handle := handlePattern.FindStringSubmatch(line)
		if handle == nil || !hasPodAddress(line, pods) {
			others++
			continue
		}
		ours = append(ours, "delete rule "+table+" "+chain+" handle "+handle[1]+"\n")
	}
	if !preexisting && others == 0 {
		return "delete table " + table + "\n"
	}
	return strings.Join(ours, "")
}

// isSharedChain matches the chains that the portmap plugin creates once for all pods.
func isSharedChain(name string) bool { return strings.HasPrefix(name, "CNI-HOSTPORT-") }

// chainCleanupScript reads `iptables -t nat -S` and returns input for `iptables-restore
// --noflush`. preexisting lists the nat chains that existed before Swiftlet started.
func chainCleanupScript(listing string, pods netip.Prefix, preexisting []string) (script string) {
	var chains, rules []string
	for line := range strings.Lines(listing) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "-N "); ok {
			chains = append(chains, name)
		} else if strings.HasPrefix(line, "-A ") {
			rules = append(rules, line)
		}
	}
	toDelete := podChains(rules, pods, preexisting)
	// The shared chains are deleted only if they lead to no pod of another program.
	inUse := slices.ContainsFunc(rules, func(r string) bool {
		return strings.HasPrefix(r, "-A CNI-HOSTPORT-DNAT ") && !slices.Contains(toDelete, jumpTarget(r))
	})
	for _, c := range chains {
		if isSharedChain(c) && !inUse && !slices.Contains(preexisting, c) {
			toDelete = append(toDelete, c)
		}
	}
	if len(toDelete) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("*nat\n")
	for _, r := range rules {
		from := strings.Fields(r)[1]
		if slices.Contains(toDelete, jumpTarget(r)) && !slices.Contains(toDelete, from) {
			out.WriteString("-D" + strings.TrimPrefix(r, "-A") + "\n")
		}
	}
	for _, c := range toDelete {
		out.WriteString("-F " + c + "\n")
	}
	for _, c := range toDelete {
		out.WriteString("-X " + c + "\n")
	}
	out.WriteString("COMMIT\n")
	return out.String()
}

// podChains lists the plugins' chains for single pods of ours: those that a rule with a pod's
// address is in or jumps to.
func podChains(rules []string, pods netip.Prefix, preexisting []string) []string {
	var found []string
	for _, r := range rules {
		if !hasPodAddress(r, pods) {
			continue
		}
		for _, c := range []string{strings.Fields(r)[1], jumpTarget(r)} {
			if strings.HasPrefix(c, "CNI-") && !isSharedChain(c) && !slices.Contains(preexisting, c) && !slices.Contains(found, c) {
				found = append(found, c)
			}
		}
	}
	return found
}

// jumpTarget returns the target of a rule as iptables lists it.
func jumpTarget(rule string) string {
	fields := strings.Fields(rule)
	if i := slices.Index(fields, "-j"); i >= 0 && i+1 < len(fields) {
		return fields[i+1]
	}
	return ""
}

// tableEmpty reports whether a table, as listed by nft, has no rules and no chains except base
// chains that accept everything.
func tableEmpty(listing string) bool {
	for line := range strings.Lines(listing) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " # handle")
		base := strings.HasPrefix(line, "type ") && strings.HasSuffix(line, "policy accept;")
		frame := line == "" || line == "}" || strings.HasPrefix(line, "table ") || strings.HasPrefix(line, "chain ") || strings.HasPrefix(line, "#")
		if !frame && !base {
			return false
		}
	}
	return strings.Count(listing, "chain ") == strings.Count(listing, "type ")
}
