package standalone

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// The CNI plugins leave the tables and chains they share among pods in place for good,
// and a pod's own rules when its end was never told to them. The functions here take a
// listing of the rules and say what to feed back to take ours away. A rule is ours when
// it names an address of the pod network.

var (
	addressPattern = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`)
	handlePattern  = regexp.MustCompile(`# handle (\d+)$`)
)

func namesPod(rule string, pods netip.Prefix) bool {
	return slices.ContainsFunc(addressPattern.FindAllString(rule, -1), func(s string) bool {
		address, err := netip.ParseAddr(s)
		return err == nil && pods.Contains(address)
	})
}

// tableCleanup reads `nft -a list table` of one of the plugins' tables. It drops the whole
// table where it was not there before us and holds no one else's rules, else our rules.
func tableCleanup(table, listing string, pods netip.Prefix, wasThere bool) (script string) {
	var ours []string
	others, chain := 0, ""
	for line := range strings.Lines(listing) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "chain "); ok {
			chain, _, _ = strings.Cut(name, " ")
			continue
		}
		// Each pod's rules bear a comment with its id; the fixed ones bear none.
		if strings.HasPrefix(line, "comment ") || !strings.Contains(line, ` comment "`) {
			continue
		}
		handle := handlePattern.FindStringSubmatch(line)
		if handle == nil || !namesPod(line, pods) {
			others++
			continue
		}
		ours = append(ours, "delete rule "+table+" "+chain+" handle "+handle[1]+"\n")
	}
	if !wasThere && others == 0 {
		return "delete table " + table + "\n"
	}
	return strings.Join(ours, "")
}

// sharedChain matches the chains that the portmap plugin makes once for all pods.
func sharedChain(name string) bool { return strings.HasPrefix(name, "CNI-HOSTPORT-") }

// chainCleanup reads `iptables -t nat -S` and returns what to feed to iptables-restore
// --noflush. wasThere lists the nat chains that existed before us.
func chainCleanup(listing string, pods netip.Prefix, wasThere []string) (script string) {
	var chains, rules []string
	for line := range strings.Lines(listing) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "-N "); ok {
			chains = append(chains, name)
		} else if strings.HasPrefix(line, "-A ") {
			rules = append(rules, line)
		}
	}
	doomed := podChains(rules, pods, wasThere)
	// The shared chains go only when no pod of anybody's hangs below them.
	inUse := slices.ContainsFunc(rules, func(r string) bool {
		return strings.HasPrefix(r, "-A CNI-HOSTPORT-DNAT ") && !slices.Contains(doomed, jump(r))
	})
	for _, c := range chains {
		if sharedChain(c) && !inUse && !slices.Contains(wasThere, c) {
			doomed = append(doomed, c)
		}
	}
	if len(doomed) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("*nat\n")
	for _, r := range rules {
		from := strings.Fields(r)[1]
		if slices.Contains(doomed, jump(r)) && !slices.Contains(doomed, from) {
			out.WriteString("-D" + strings.TrimPrefix(r, "-A") + "\n")
		}
	}
	for _, c := range doomed {
		out.WriteString("-F " + c + "\n")
	}
	for _, c := range doomed {
		out.WriteString("-X " + c + "\n")
	}
	out.WriteString("COMMIT\n")
	return out.String()
}

// podChains are the plugins' chains for single pods of ours: reached by, or holding, a
// rule with a pod's address.
func podChains(rules []string, pods netip.Prefix, wasThere []string) []string {
	var found []string
	for _, r := range rules {
		if !namesPod(r, pods) {
			continue
		}
		for _, c := range []string{strings.Fields(r)[1], jump(r)} {
			if strings.HasPrefix(c, "CNI-") && !sharedChain(c) && !slices.Contains(wasThere, c) && !slices.Contains(found, c) {
				found = append(found, c)
			}
		}
	}
	return found
}

// jump is the target of a rule as iptables lists it.
func jump(rule string) string {
	fields := strings.Fields(rule)
	if i := slices.Index(fields, "-j"); i >= 0 && i+1 < len(fields) {
		return fields[i+1]
	}
	return ""
}

// tableEmpty reports whether a table as nft lists it holds no rule and no chain of
// anybody's own: nothing but base chains that let everything pass.
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
