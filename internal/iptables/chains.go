package iptables

import (
	"context"
	"errors"
	"fmt"
)

const (
	// hint is looked for in iptables-legacy and iptables-nft, by those who must use the same.
	hint = "KUBE-IPTABLES-HINT"
	// firewall holds the rule about loopback addresses.
	firewall = "KUBE-FIREWALL"
	// canary is there to be missed when the tables are flushed.
	canary = "KUBE-KUBELET-CANARY"
)

// canaryTables are where it sits; who must look himself looks at the first alone.
var canaryTables = []string{"mangle", "nat", "filter"}

// rule is one that must be in a chain.
type rule struct {
	table, chain string
	first        bool // goes before what is there, not behind
	match        []string
}

// firewallRules let nobody reach 127.0.0.0/8 from elsewhere: kube-proxy may have the kernel
// route there. kube-proxy makes the last one too, and it must be the very same.
var firewallRules = []rule{
	{"filter", "OUTPUT", true, []string{"-j", firewall}},
	{"filter", "INPUT", true, []string{"-j", firewall}},
	{"filter", firewall, false, []string{"-m", "comment", "--comment", "block incoming localnet connections",
		"--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8",
		"-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP"}},
}

// ensure makes whatever is missing. The canary comes last: where it is, all else was made.
func (f *family) ensure(ctx context.Context) error {
	if err := f.ensureChain(ctx, "mangle", hint); err != nil {
		return err
	}
	if f.loopback {
		if err := f.ensureChain(ctx, "filter", firewall); err != nil {
			return err
		}
		for _, r := range firewallRules {
			if err := f.ensureRule(ctx, r); err != nil {
				return err
			}
		}
	}
	for _, table := range canaryTables {
		if err := f.ensureChain(ctx, table, canary); err != nil {
			return err
		}
	}
	return nil
}

func (f *family) ensureChain(ctx context.Context, table, chain string) error {
	err := f.run(ctx, "-N", chain, "-t", table)
	if err != nil && !errors.Is(err, errNo) { // it says no to one that is there already
		return fmt.Errorf("make chain %s in %s: %w", chain, table, err)
	}
	return nil
}

func (f *family) ensureRule(ctx context.Context, r rule) error {
	err := f.run(ctx, append([]string{"-C", r.chain, "-t", r.table}, r.match...)...)
	if errors.Is(err, errNo) {
		add := "-A"
		if r.first {
			add = "-I"
		}
		err = f.run(ctx, append([]string{add, r.chain, "-t", r.table}, r.match...)...)
	}
	if err != nil {
		return fmt.Errorf("put a rule into %s of %s: %w", r.chain, r.table, err)
	}
	return nil
}

// flushed reports whether a table's canary is gone. While iptables cannot tell, it is not.
func (f *family) flushed(ctx context.Context, table string) bool {
	err := f.run(ctx, "-S", canary, "-t", table)
	return err != nil && !errors.Is(err, errBusy) && ctx.Err() == nil
}
