package iscsi

import (
	"context"
	"fmt"
)

// The keys of a CHAP secret are iscsiadm's own names.
var (
	discoveryKeys = []string{"discovery.sendtargets.auth.username", "discovery.sendtargets.auth.password",
		"discovery.sendtargets.auth.username_in", "discovery.sendtargets.auth.password_in"}
	sessionKeys = []string{"node.session.auth.username", "node.session.auth.password",
		"node.session.auth.username_in", "node.session.auth.password_in"}
)

// logIn discovers the target at a portal and starts a session.
func (l login) logIn(ctx context.Context, portal string) error {
	discovery, node := l.discoveryRecord(portal), l.nodeRecord(portal)
	_, _ = l.iscsiadm(ctx, withArgs(discovery.args, "-o", "new")...) // it may exist
	if l.source.DiscoveryCHAPAuth {
		if err := l.authenticate(ctx, discovery, "discovery.sendtargets.auth.authmethod", discoveryKeys); err != nil {
			return fmt.Errorf("iscsi: failed to update discoverydb to portal %s error: %w", portal, err)
		}
	}
	if _, err := l.iscsiadm(ctx, withArgs(discovery.args, "--discover")...); err != nil {
		_, _ = l.iscsiadm(ctx, withArgs(discovery.args, "-o", "delete")...)
		return fmt.Errorf("iscsi: failed to sendtargets to portal %s, err %w", portal, err)
	}
	// Without it the login adds all disks of the target. Versions without this setting do that
	// anyway.
	_, _ = l.iscsiadm(ctx, withArgs(node.args, "-o", "update", "-n", "node.session.scan", "-v", "manual")...)
	if l.source.SessionCHAPAuth {
		if err := l.authenticate(ctx, node, "node.session.auth.authmethod", sessionKeys); err != nil {
			return fmt.Errorf("iscsi: failed to update iscsi node to portal %s error: %w", portal, err)
		}
	}
	if _, err := l.iscsiadm(ctx, withArgs(node.args, "--login")...); err != nil && !exitedWith(err, codeExists) {
		_, _ = l.iscsiadm(ctx, "-m", "node", "-p", portal, "-I", l.Iface, "-T", l.Iqn, "-o", "delete")
		return fmt.Errorf("iscsi: failed to attach disk: Error: %w", err)
	}
	// So that booting does not wait for the target.
	_, _ = l.iscsiadm(ctx, "-m", "node", "-p", portal, "-T", l.Iqn, "-o", "update", "-n", "node.startup", "-v", "manual")
	return nil
}

func withArgs(args []string, more ...string) []string {
	return append(args[:len(args):len(args)], more...)
}
