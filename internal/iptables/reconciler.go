package iptables

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"swiftlet/internal/require"
)

const (
	// pollInterval is the time between checks without notifications from the kernel.
	pollInterval = time.Minute
	// flushPoll and flushTimeout are for a flush in progress: it is over when all canaries are
	// gone, or after flushTimeout.
	flushPoll    = 100 * time.Millisecond
	flushTimeout = 5 * time.Second
)

// Deps are the Reconciler's dependencies.
type Deps struct {
	Clock clock.Clock
	Log   *slog.Logger
}

// Reconciler creates the chains, and again after they are flushed.
type Reconciler struct{ deps Deps }

// New validates its arguments and starts nothing.
func New(deps Deps) (*Reconciler, error) {
	if err := require.Set("new iptables reconciler", map[string]any{
		"Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	return &Reconciler{deps: deps}, nil
}

// family is IPv4 or IPv6.
type family struct {
	name     string
	program  string
	number   uint8 // address family
	loopback bool  // needs firewallRules
}

// Run creates the chains and maintains them until ctx is done; they stay afterwards. A node
// without iptables does not need them.
func (k *Reconciler) Run(ctx context.Context) error {
	var available []family
	for _, f := range []family{
		{name: "IPv4", program: "iptables", number: unix.AF_INET, loopback: true},
		{name: "IPv6", program: "ip6tables", number: unix.AF_INET6},
	} {
		if f.works(ctx) {
			available = append(available, f)
		}
	}
	if len(available) == 0 && ctx.Err() == nil {
		k.deps.Log.Info("iptables: not available on this node, not creating chains", "chain", hintChain)
	}
	var running sync.WaitGroup
	for _, f := range available {
		running.Go(func() { k.reconcile(ctx, &f) })
	}
	running.Wait()
	return nil
}

// reconcile creates the chains of one family, and again after each flush. It gives up if the
// first attempt fails: the kubelet itself does not need them.
func (k *Reconciler) reconcile(ctx context.Context, f *family) {
	log := k.deps.Log.With("family", f.name)
	lost, end := k.watch(ctx, f, log)
	defer end()
	if err := f.ensure(ctx); err != nil {
		if ctx.Err() == nil {
			log.Warn("iptables: create chains failed", "err", err)
		}
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-lost:
		}
		if left := k.waitForFlush(ctx, f); left == len(canaryTables) || ctx.Err() != nil {
			continue // nothing is missing
		}
		log.Info("iptables: tables were flushed, creating chains again")
		for err := f.ensure(ctx); err != nil && ctx.Err() == nil; err = f.ensure(ctx) {
			log.Warn("iptables: create chains after flush failed", "retryAfter", pollInterval, "err", err)
			k.wait(ctx, pollInterval)
		}
	}
}

// waitForFlush waits for the end of a flush in progress, and returns how many canaries are left.
// A flush that has not reached all tables yet would delete chains that are created now.
func (k *Reconciler) waitForFlush(ctx context.Context, f *family) (left int) {
	for deadline := k.deps.Clock.Now().Add(flushTimeout); ; {
		left = 0
		for _, table := range canaryTables {
			if !f.canaryGone(ctx, table) {
				left++
			}
		}
		done := left == 0 || left == len(canaryTables)
		if done || k.deps.Clock.Now().After(deadline) || !k.wait(ctx, flushPoll) {
			return left
		}
	}
}

// wait waits for d. It returns false if ctx is done before.
func (k *Reconciler) wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-k.deps.Clock.After(d):
		return true
	}
}
