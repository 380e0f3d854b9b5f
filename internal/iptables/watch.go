package iptables

import (
	"context"
	"log/slog"

	"swiftlet/internal/nftables"
	"swiftlet/internal/notify"
)

// watch sends to the channel whenever a canary of the family may be gone. The function that it
// returns stops the watch and waits for its end.
func (k *Reconciler) watch(ctx context.Context, f *family, log *slog.Logger) (<-chan struct{}, func()) {
	ctx, stop := context.WithCancel(ctx)
	lost, done := notify.New(), make(chan struct{})
	var listener *nftables.Listener
	var err error
	if f.usesNftables(ctx) {
		if listener, err = nftables.Listen(); err != nil {
			log.Warn("iptables: subscribe to nftables failed, polling", "interval", pollInterval, "err", err)
		}
	}
	go func() {
		defer close(done)
		if listener != nil {
			err := listener.Run(ctx, f.isCanary, lost.Notify)
			if ctx.Err() != nil {
				return
			}
			log.Warn("iptables: nftables subscription failed, polling", "interval", pollInterval, "err", err)
		}
		for k.wait(ctx, pollInterval) {
			if f.canaryGone(ctx, canaryTables[0]) {
				lost.Notify()
			}
		}
	}()
	return lost, func() { stop(); <-done }
}

// isCanary reports whether a chain is the canary of one of the family's tables.
func (f *family) isCanary(c nftables.Chain) bool {
	return c.Family == f.number && c.Name == canaryChain
}
