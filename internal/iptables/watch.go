package iptables

import (
	"context"
	"log/slog"

	"swiftlet/internal/nftables"
	"swiftlet/internal/notify"
)

// watch has the channel sent to whenever a canary of the family may be gone, until the
// function is called, which waits for the end of it.
func (k *Keeper) watch(ctx context.Context, f *family, log *slog.Logger) (<-chan struct{}, func()) {
	ctx, stop := context.WithCancel(ctx)
	lost, done := notify.New(), make(chan struct{})
	var kernel *nftables.Listener
	var err error
	if f.notifies(ctx) {
		if kernel, err = nftables.Listen(); err != nil {
			log.Warn("the kernel does not tell of changes of iptables; looking instead", "every", look, "err", err)
		}
	}
	go func() {
		defer close(done)
		if kernel != nil {
			err := kernel.Run(ctx, f.isCanary, lost.Notify)
			if ctx.Err() != nil {
				return
			}
			log.Warn("the kernel no longer tells of changes of iptables; looking instead", "every", look, "err", err)
		}
		for k.wait(ctx, look) {
			if f.flushed(ctx, canaryTables[0]) {
				lost.Notify()
			}
		}
	}()
	return lost, func() { stop(); <-done }
}

// isCanary reports whether a chain is the canary of one of the family's tables.
func (f *family) isCanary(c nftables.Chain) bool { return c.Family == f.number && c.Name == canary }
