package node

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/backoff"
)

// Run registers the node, reports its status and renews its lease until ctx is done. Failures
// of the API server and of the runtime are retried. Run returns an error if it cannot enforce
// Config.Reservations.
func (n *Node) Run(ctx context.Context) error {
	n.recordEvents(event{v1.EventTypeNormal, "Starting", "Starting kubelet."})
	if n.cfg.CgroupVersion == 1 {
		n.recordEvents(event{v1.EventTypeWarning, "CgroupV1", cgroupV1Warning})
	}
	if err := n.enforceReserved(); err != nil {
		return err
	}
	var group errgroup.Group
	group.Go(func() error { n.syncStatus(ctx); return nil })
	group.Go(func() error { n.enforceAllocatable(ctx); return nil })
	if n.deps.Client != nil {
		group.Go(func() error { n.renewLease(ctx); return nil })
	}
	return group.Wait()
}

// syncStatus is the loop that registers the node and reports its status.
func (n *Node) syncStatus(ctx context.Context) {
	if n.deps.Client != nil {
		if n.register(ctx) != nil {
			return
		}
	}
	retry := backoff.Backoff{First: retryFirst, Longest: retryMax}
	var retryAt time.Time // the earliest time of the next report after one failed
	for {
		n.checkRuntime(ctx)
		wait := n.cfg.StatusUpdateFrequency
		now := n.deps.Clock.Now()
		if rest := retryAt.Sub(now); rest > 0 && !n.retryReport.Swap(false) {
			wait = rest
		} else if err := n.report(ctx); err == nil {
			retry.Reset()
		} else {
			if ctx.Err() != nil {
				return
			}
			wait = retry.Next()
			n.log.Error("node: status update failed, will retry", "retryIn", wait, "err", err)
			retryAt = n.deps.Clock.Now().Add(wait)
		}
		if n.runtime.unhealthy() {
			wait = min(wait, unhealthyPeriod)
		}
		if !n.sleep(ctx, wait, n.notify) {
			return
		}
	}
}

// checkRuntime checks the container runtime. It logs when the runtime fails and when it
// recovers, not every failed check.
func (n *Node) checkRuntime(ctx context.Context) {
	was := n.runtime.failingSince
	err := n.runtime.check(ctx, n.deps.Runtime, n.deps.Clock.Now())
	n.mu.Lock()
	n.networkErr = n.runtime.networkNotReady()
	n.mu.Unlock()
	switch {
	case err != nil && was.IsZero():
		n.log.Error("node: container runtime status check failed", "err", err)
	case err == nil && !was.IsZero():
		n.log.Info("node: container runtime recovered", "downFor", n.deps.Clock.Since(was))
	}
}

// sleep waits for d, or until it receives from wake. It returns false when ctx is done.
func (n *Node) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := n.deps.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
	case <-wake:
	}
	return true
}
