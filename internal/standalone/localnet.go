package standalone

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"swiftlet/internal/nftables"
	"swiftlet/internal/notify"
)

// The portmap plugin sets route_localnet on the pod bridge, so that a host port answers on the
// host's 127.0.0.1 too. With that, a container that crafts its own frames could reach what
// listens on the host's loopback, or pass for it (the class of CVE-2020-8558). No genuine
// packet on the bridge has a loopback address: those that do are dropped as they arrive,
// before connection tracking translates addresses. The rules match the bridge by name, so
// they can be added before the bridge exists.

// localnetChain is in a table of Swiftlet's own.
var localnetChain = nftables.Chain{Family: unix.AF_INET, Table: "swiftlet", Name: "localnet"}

const (
	localnetTable  = "ip swiftlet"
	localnetScript = `add table ip swiftlet
add chain ip swiftlet localnet { type filter hook prerouting priority -300; policy accept; }
flush chain ip swiftlet localnet
add rule ip swiftlet localnet iifname "` + bridgeName + `" ip daddr 127.0.0.0/8 drop
add rule ip swiftlet localnet iifname "` + bridgeName + `" ip saddr 127.0.0.0/8 drop
`
	// localnetRecheck is how often the rules are checked if the kernel sends no notifications of
	// deletions.
	localnetRecheck = time.Minute
)

// localnetRules are the same rules for iptables, in the chain PREROUTING of its table raw.
var localnetRules = [][]string{
	{"-i", bridgeName, "-d", "127.0.0.0/8", "-j", "DROP"},
	{"-i", bridgeName, "-s", "127.0.0.0/8", "-j", "DROP"},
}

// blockLocalnet drops packets with a loopback address that arrive on the pod bridge. It is
// idempotent.
func blockLocalnet(ctx context.Context, backend string) error {
	if backend == backendNftables {
		return wrapLocalnet(runWithInput(ctx, localnetScript, "nft", "-f", "-"))
	}
	for _, rule := range localnetRules {
		if rawPrerouting(ctx, "-C", rule) == nil {
			continue
		}
		if err := rawPrerouting(ctx, "-I", rule); err != nil {
			return wrapLocalnet(err)
		}
	}
	return nil
}

func wrapLocalnet(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("block loopback addresses on the pod bridge: %w", err)
}

// removeLocalnetRules removes the iptables rules; cleanTables removes the nftables table.
func removeLocalnetRules() error {
	for _, rule := range localnetRules {
		if rawPrerouting(context.Background(), "-C", rule) != nil {
			continue // no such rule, or no iptables
		}
		if err := rawPrerouting(context.Background(), "-D", rule); err != nil {
			return fmt.Errorf("remove iptables rules of the pod bridge: %w", err)
		}
	}
	return nil
}

// rawPrerouting calls iptables with one action on a rule.
func rawPrerouting(ctx context.Context, action string, rule []string) error {
	return runHostProgram(ctx, "iptables", append([]string{"-w", "5", "-t", "raw", action, "PREROUTING"}, rule...)...)
}

// keepLocalnetBlocked restores the rules, and the way to the API server, when another program flushes the packet filter,
// until ctx ends.
func (s *Supervisor) keepLocalnetBlocked(ctx context.Context, backend string) {
	log := s.deps.Log.With("interface", bridgeName)
	listener, err := listenLocalnet(backend) // before the rules are made, so that no deletion is missed
	deleted, quiet := notify.New(), make(chan struct{})
	go func() {
		defer close(quiet)
		if err == nil {
			err = listener.Run(ctx, isLocalnetChain, deleted.Notify)
		}
		if ctx.Err() == nil {
			log.Info("localnet: no messages from nftables, checking rules at intervals", "interval", localnetRecheck, "err", err)
		}
	}()
	for polling := false; ; {
		err := blockLocalnet(ctx, backend)
		if err != nil && ctx.Err() == nil {
			log.Error("localnet: rules are missing, pods may reach the host's loopback", "retry", localnetRecheck, "err", err)
		}
		if routeErr := routeAPI(ctx, s.cfg, backend); routeErr != nil && ctx.Err() == nil {
			log.Error("localnet: rule is missing, pods cannot reach the API", "retry", localnetRecheck, "err", routeErr)
			err = routeErr
		}
		var recheck <-chan time.Time
		if polling || err != nil {
			recheck = s.deps.Clock.After(localnetRecheck)
		}
		select {
		case <-deleted:
			log.Warn("localnet: another program flushed nftables, restoring rules")
		case <-recheck:
		case <-quiet:
			if ctx.Err() != nil {
				return
			}
			polling, quiet = true, nil
		case <-ctx.Done():
			if quiet != nil {
				<-quiet
			}
			return
		}
	}
}

// listenLocalnet subscribes to deletions of nftables chains. The kernel sends no messages about
// iptables rules.
func listenLocalnet(backend string) (*nftables.Listener, error) {
	if backend != backendNftables {
		return nil, fmt.Errorf("listen for deletions: not supported by %s", backend)
	}
	return nftables.Listen()
}

func isLocalnetChain(c nftables.Chain) bool { return c == localnetChain }
