package node

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/backoff"
)

// Run registers the node, keeps its status and its lease, until ctx is done. Nothing that
// happens to the API server or the runtime ends it; that the groups of the system cannot be
// bounded does.
func (n *Node) Run(ctx context.Context) error {
	n.tell(event{v1.EventTypeNormal, "Starting", "Starting kubelet."})
	if n.cfg.CgroupVersion == 1 {
		n.tell(event{v1.EventTypeWarning, "CgroupV1", cgroupV1Warning})
	}
	if err := n.enforceReserved(); err != nil {
		return err
	}
	var group errgroup.Group
	group.Go(func() error { n.keepStatus(ctx); return nil })
	group.Go(func() error { n.enforce(ctx); return nil })
	if n.deps.Client != nil {
		group.Go(func() error { n.keepLease(ctx); return nil })
	}
	return group.Wait()
}

// keepStatus is the loop that all of the status belongs to.
func (n *Node) keepStatus(ctx context.Context) {
	if n.deps.Client != nil {
		if n.register(ctx) != nil {
			return
		}
	}
	retry := backoff.Backoff{First: retryFirst, Longest: retryMax}
	var retryAt time.Time // while the API server fails: not before this
	for {
		n.lookAtRuntime(ctx)
		wait := n.cfg.StatusUpdateFrequency
		now := n.deps.Clock.Now()
		if rest := retryAt.Sub(now); rest > 0 && !n.retry.Swap(false) {
			wait = rest
		} else if err := n.report(ctx); err == nil {
			retry.Reset()
		} else {
			if ctx.Err() != nil {
				return
			}
			wait = retry.Next()
			n.log.Error("node status was not reported, will retry", "in", wait, "err", err)
			retryAt = n.deps.Clock.Now().Add(wait)
		}
		if n.runtime.troubled() {
			wait = min(wait, troubledEvery)
		}
		if !n.sleep(ctx, wait, n.notify) {
			return
		}
	}
}

// lookAtRuntime logs the moments in which the runtime goes and comes, not each failure.
func (n *Node) lookAtRuntime(ctx context.Context) {
	was := n.runtime.failingSince
	err := n.runtime.look(ctx, n.deps.Runtime, n.deps.Clock.Now())
	n.mu.Lock()
	n.noNetwork = n.runtime.networkNotReady()
	n.mu.Unlock()
	switch {
	case err != nil && was.IsZero():
		n.log.Error("container runtime does not answer", "err", err)
	case err == nil && !was.IsZero():
		n.log.Info("container runtime answers again", "after", n.deps.Clock.Since(was))
	}
}

// sleep waits for d, or until early yields. It is false when ctx is done.
func (n *Node) sleep(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	timer := n.deps.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
	case <-early:
	}
	return true
}
