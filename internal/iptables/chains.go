package iptables

import (
	"context"
	"errors"
	"fmt"
)

const (
	// hintChain exists in the variant that the node uses, iptables-legacy or iptables-nft, so
	// that other programs use the same.
	hintChain = "KUBE-IPTABLES-HINT"
	// firewallChain has the rule about loopback addresses.
	firewallChain = "KUBE-FIREWALL"
	// canaryChain disappears when the tables are flushed.
	canaryChain = "KUBE-KUBELET-CANARY"
)

// canaryTables have a canary chain. Polling checks only the first.
var canaryTables = []string{"mangle", "nat", "filter"}

// rule is a rule of a chain.
type rule struct {
	table, chain string
	prepend      bool // before existing rules, not after
	match        []string
}

// firewallRules block 127.0.0.0/8 from other hosts: kube-proxy may enable routing to it. The
// last rule must equal the one that kube-proxy creates.
var firewallRules = []rule{
	{"filter", "OUTPUT", true, []string{"-j", firewallChain}},
	{"filter", "INPUT", true, []string{"-j", firewallChain}},
	{"filter", firewallChain, false, []string{"-m", "comment", "--comment", "block incoming localnet connections",
		"--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8",
		"-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP"}},
}

// ensure creates what is missing. The canaries come last: they show that everything else exists.
func (f *family) ensure(ctx context.Context) error {
	if err := f.ensureChain(ctx, "mangle", hintChain); err != nil {
		return err
	}
	if f.loopback {
		if err := f.ensureChain(ctx, "filter", firewallChain); err != nil {
			return err
		}
		for _, r := range firewallRules {
			if err := f.ensureRule(ctx, r); err != nil {
				return err
			}
		}
	}
	for _, table := range canaryTables {
		if err := f.ensureChain(ctx, table, canaryChain); err != nil {
			return err
		}
	}
	return nil
}

func (f *family) ensureChain(ctx context.Context, table, chain string) error {
	err := f.run(ctx, "-N", chain, "-t", table)
	if err != nil && !errors.Is(err, errRejected) { // the chain exists already
		return fmt.Errorf("create chain %s in table %s: %w", chain, table, err)
	}
	return nil
}

func (f *family) ensureRule(ctx context.Context, r rule) error {
	err := f.run(ctx, append([]string{"-C", r.chain, "-t", r.table}, r.match...)...)
	if errors.Is(err, errRejected) {
		add := "-A"
		if r.prepend {
			add = "-I"
		}
		err = f.run(ctx, append([]string{add, r.chain, "-t", r.table}, r.match...)...)
	}
	if err != nil {
		return fmt.Errorf("add rule to chain %s in table %s: %w", r.chain, r.table, err)
	}
	return nil
}

// canaryGone reports whether a table's canary is gone. It is false if iptables is locked.
func (f *family) canaryGone(ctx context.Context, table string) bool {
	err := f.run(ctx, "-S", canaryChain, "-t", table)
	return err != nil && !errors.Is(err, errLocked) && ctx.Err() == nil
}
