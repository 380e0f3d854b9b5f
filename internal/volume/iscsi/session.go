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
	discovery := []string{"-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", l.Iface}
	node := []string{"-m", "node", "-p", portal, "-T", l.Iqn, "-I", l.Iface}
	_, _ = l.iscsiadm(ctx, withArgs(discovery, "-o", "new")...) // it may exist
	if l.source.DiscoveryCHAPAuth {
		if err := l.authenticate(ctx, discovery, "discovery.sendtargets.auth.authmethod", discoveryKeys); err != nil {
			return fmt.Errorf("iscsi: failed to update discoverydb to portal %s error: %w", portal, err)
		}
	}
	if _, err := l.iscsiadm(ctx, withArgs(discovery, "--discover")...); err != nil {
		_, _ = l.iscsiadm(ctx, withArgs(discovery, "-o", "delete")...)
		return fmt.Errorf("iscsi: failed to sendtargets to portal %s, err %w", portal, err)
	}
	// Without it the login adds all disks of the target. Versions without this setting do that
	// anyway.
	_, _ = l.iscsiadm(ctx, withArgs(node, "-o", "update", "-n", "node.session.scan", "-v", "manual")...)
	if l.source.SessionCHAPAuth {
		if err := l.authenticate(ctx, node, "node.session.auth.authmethod", sessionKeys); err != nil {
			return fmt.Errorf("iscsi: failed to update iscsi node to portal %s error: %w", portal, err)
		}
	}
	if _, err := l.iscsiadm(ctx, withArgs(node, "--login")...); err != nil && !exitedWith(err, codeExists) {
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

// authenticate sets the CHAP credentials. Its errors do not contain them.
func (l login) authenticate(ctx context.Context, record []string, method string, keys []string) error {
	if _, err := l.iscsiadm(ctx, withArgs(record, "-o", "update", "-n", method, "-v", "CHAP")...); err != nil {
		return err
	}
	for _, key := range keys {
		value := string(l.chap[key])
		if value == "" {
			continue
		}
		if _, err := l.iscsiadm(ctx, withArgs(record, "-o", "update", "-n", key, "-v", value)...); err != nil {
			return fmt.Errorf("set %s: %w", key, err)
		}
	}
	return nil
}
