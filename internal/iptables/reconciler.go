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
	// look is how often it is looked where the kernel does not tell.
	look = time.Minute
	// flushLook and flushTime: a flush that has begun is over when all canaries are gone, or
	// after this time.
	flushLook = 100 * time.Millisecond
	flushTime = 5 * time.Second
)

// Deps are the keeper's surroundings.
type Deps struct {
	Clock clock.Clock
	Log   *slog.Logger
}

// Keeper keeps the chains in place.
type Keeper struct{ deps Deps }

// New validates and starts nothing.
func New(deps Deps) (*Keeper, error) {
	if err := require.Set("new keeper of iptables", map[string]any{
		"Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	return &Keeper{deps: deps}, nil
}

// family is one of the two kinds of iptables.
type family struct {
	name     string
	program  string
	number   uint8 // as the kernel counts address families
	loopback bool  // others can reach its loopback addresses
}

// Run makes the chains and keeps them until ctx ends, when they stay. A node without iptables
// has nobody who looks for them.
func (k *Keeper) Run(ctx context.Context) error {
	var present []family
	for _, f := range []family{
		{name: "IPv4", program: "iptables", number: unix.AF_INET, loopback: true},
		{name: "IPv6", program: "ip6tables", number: unix.AF_INET6},
	} {
		if f.present(ctx) {
			present = append(present, f)
		}
	}
	if len(present) == 0 && ctx.Err() == nil {
		k.deps.Log.Info("there is no iptables on this node, and no chain " + hint + " is made")
	}
	var kept sync.WaitGroup
	for _, f := range present {
		kept.Go(func() { k.keep(ctx, &f) })
	}
	kept.Wait()
	return nil
}

// keep makes one family's chains, again whenever they were flushed. Where that does not work
// to begin with, it is left alone: nothing of ours needs them.
func (k *Keeper) keep(ctx context.Context, f *family) {
	log := k.deps.Log.With("family", f.name)
	lost, end := k.watch(ctx, f, log)
	defer end()
	if err := f.ensure(ctx); err != nil {
		if ctx.Err() == nil {
			log.Warn("the chains of iptables that other programs look for are not made", "err", err)
		}
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-lost:
		}
		if left := k.settle(ctx, f); left == len(canaryTables) || ctx.Err() != nil {
			continue // nothing is missing
		}
		log.Info("somebody flushed iptables; making our chains again")
		for err := f.ensure(ctx); err != nil && ctx.Err() == nil; err = f.ensure(ctx) {
			log.Warn("the chains of iptables are not made again yet", "retry", look, "err", err)
			k.wait(ctx, look)
		}
	}
}

// settle waits for the end of a flush that has begun, and tells how many canaries are left.
// Whoever flushes may not have come to all tables yet, and would take away what is made.
func (k *Keeper) settle(ctx context.Context, f *family) (left int) {
	for deadline := k.deps.Clock.Now().Add(flushTime); ; {
		left = 0
		for _, table := range canaryTables {
			if !f.flushed(ctx, table) {
				left++
			}
		}
		whole := left == 0 || left == len(canaryTables)
		if whole || k.deps.Clock.Now().After(deadline) || !k.wait(ctx, flushLook) {
			return left
		}
	}
}

// wait reports whether the time has passed; it has not where ctx ended.
func (k *Keeper) wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-k.deps.Clock.After(d):
		return true
	}
}
