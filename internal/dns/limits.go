package dns

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Limits of the resolver libraries in common images. Longer lists are truncated, with a warning
// that names the rest.
const (
	maxServers      = 3
	maxSearches     = 32
	maxSearchChars  = 2048
	maxDomainLength = 253
)

// Warning becomes an event on the pod.
type Warning struct {
	Reason  string
	Message string
}

const reasonForming = "DNSConfigForming"

// applyLimits truncates conf to the limits.
func applyLimits(conf ResolvConf) (ResolvConf, []Warning) {
	var warnings []Warning
	if len(conf.Servers) > maxServers {
		conf.Servers = conf.Servers[:maxServers]
		warnings = append(warnings, Warning{reasonForming, fmt.Sprintf(
			"Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: %s",
			strings.Join(conf.Servers, " "))})
	}
	searches, truncated := limitSearches(conf.Searches)
	conf.Searches = searches
	if truncated {
		warnings = append(warnings, Warning{reasonForming, fmt.Sprintf(
			"Search Line limits were exceeded, some search paths have been omitted, the applied search line is: %s",
			strings.Join(conf.Searches, " "))})
	}
	return conf, warnings
}

// limitSearches keeps the leading domains within the limits. It drops a domain that is too long
// by itself wherever it is: some resolvers abort on it.
func limitSearches(all []string) (kept []string, truncated bool) {
	chars := 0
	for i, domain := range all {
		if i == maxSearches {
			return kept, true
		}
		if len(domain) > maxDomainLength {
			truncated = true
			continue
		}
		separator := min(len(kept), 1)
		if chars+separator+len(domain) > maxSearchChars {
			return kept, true
		}
		chars += separator + len(domain)
		kept = append(kept, domain)
	}
	return kept, truncated
}

// Run checks the node's resolv.conf once, and records an event on the node if pods cannot use all of it.
func (r *Resolver) Run(context.Context) error {
	if problem := r.exceeded(); r.cfg.ResolvConf != "" && problem != "" {
		r.deps.Events.Eventf(r.deps.Node, v1.EventTypeWarning, "CheckLimitsForResolvConf", "%s", problem)
	}
	return nil
}

// exceeded returns why the node's resolv.conf exceeds the limits, "" if it does not.
func (r *Resolver) exceeded() string {
	conf, err := readResolvConf(r.cfg.ResolvConf)
	if err != nil {
		return err.Error()
	}
	limit := maxSearches
	if r.cfg.ClusterDomain != "" {
		limit -= 3 // the cluster's domains come first
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
