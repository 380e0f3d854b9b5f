package dns

import (
	"fmt"
	"strings"
)

// What the resolver libraries in common images can take. Longer lists are cut, with a
// warning that names what is left.
const (
	maxServers      = 3
	maxSearches     = 32
	maxSearchChars  = 2048
	maxDomainLength = 253
)

// Warning is something the user should hear of, as an event on the pod.
type Warning struct {
	Reason  string
	Message string
}

const reasonForming = "DNSConfigForming"

// fit cuts conf to the limits.
func fit(conf Resolv) (Resolv, []Warning) {
	var warnings []Warning
	if len(conf.Servers) > maxServers {
		conf.Servers = conf.Servers[:maxServers]
		warnings = append(warnings, Warning{reasonForming, fmt.Sprintf(
			"Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: %s",
			strings.Join(conf.Servers, " "))})
	}
	searches, cut := fitSearches(conf.Searches)
	conf.Searches = searches
	if cut {
		warnings = append(warnings, Warning{reasonForming, fmt.Sprintf(
			"Search Line limits were exceeded, some search paths have been omitted, the applied search line is: %s",
			strings.Join(conf.Searches, " "))})
	}
	return conf, warnings
}

// fitSearches keeps the leading domains that fit. A domain that is too long by itself is
// dropped wherever it stands: some resolvers abort on it.
func fitSearches(all []string) (kept []string, cut bool) {
	chars := 0
	for i, domain := range all {
		if i == maxSearches {
			return kept, true
		}
		if len(domain) > maxDomainLength {
			cut = true
			continue
		}
		separator := min(len(kept), 1)
		if chars+separator+len(domain) > maxSearchChars {
			return kept, true
		}
		chars += separator + len(domain)
		kept = append(kept, domain)
	}
	return kept, cut
}

// CheckNode reports why the node's resolv.conf will be cut for every pod, "" if it will
// not. The message belongs in a CheckLimitsForResolvConf event on the node.
func (r *Resolver) CheckNode() string {
	conf, err := readResolvConf(r.cfg.ResolvConf)
	if err != nil {
		return err.Error()
	}
	limit := maxSearches
	if r.cfg.ClusterDomain != "" {
		limit -= 3 // the cluster's own domains come first
	}
	if len(conf.Searches) > limit {
		return fmt.Sprintf("Resolv.conf file '%s' contains search line consisting of more than %d domains!", r.cfg.ResolvConf, limit)
	}
	for _, s := range conf.Searches {
		if len(s) > maxDomainLength {
			return fmt.Sprintf("Resolv.conf file %q contains a search path which length is more than allowed %d chars!", r.cfg.ResolvConf, maxDomainLength)
		}
	}
	if len(strings.Join(conf.Searches, " ")) > maxSearchChars {
		return fmt.Sprintf("Resolv.conf file '%s' contains search line which length is more than allowed %d chars!", r.cfg.ResolvConf, maxSearchChars)
	}
	return ""
}
