package eviction

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/backoff"
	"swiftlet/internal/pod"
)

// measureTimeout bounds the wait for the runtime to report its file systems. Memory must be
// handled within a second, which twice this time is.
const measureTimeout = 400 * time.Millisecond

// Run watches the node until ctx is done.
func (e *Evictor) Run(ctx context.Context) error {
	if len(e.cfg.Thresholds) == 0 && !e.cfg.EnforceStorageLimits {
		<-ctx.Done()
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	if e.deps.MemoryNotifier != nil {
		group.Go(func() error {
			if err := e.deps.MemoryNotifier.Run(ctx, e.memoryNotified.Notify); err != nil && ctx.Err() == nil {
				e.log.Warn("eviction: memory notifier failed, polling memory usage", "err", err)
			}
			return nil
		})
	}
	group.Go(func() error {
		defer e.background.Wait()
		for notified := false; ctx.Err() == nil; {
			wait := period
			e.contained(func() { wait = e.synchronize(ctx) })
			if needless := notified && wait > 0 && !e.nearThreshold; !needless {
				e.quiet.Reset()
			}
			notified = e.waitForNextCheck(ctx, wait, e.quiet.Next())
		}
		return nil
	})
	return group.Wait()
}

// waitForNextCheck waits until the next check is due, and reports whether a memory
// notification made it so. Nothing shortens minWait, and notifications do not shorten quiet.
func (e *Evictor) waitForNextCheck(ctx context.Context, wait, quiet time.Duration) (notified bool) {
	quiet = max(minWait, min(quiet, wait))
	return e.sleep(ctx, minWait, nil, nil) == timedOut &&
		e.sleep(ctx, quiet-minWait, nil, e.completions) == timedOut &&
		e.sleep(ctx, wait-quiet, e.memoryNotified, e.completions) == memoryNotification
}

// wakeReason is why sleep returned.
type wakeReason int

const (
	timedOut wakeReason = iota
	memoryNotification
	completed // background work; its completion has run
	canceled
)

// sleep waits for d, or until ctx is done, a memory notification arrives, or background
// work is complete.
func (e *Evictor) sleep(ctx context.Context, d time.Duration, memoryNotified <-chan struct{}, completions <-chan func()) wakeReason {
	if d <= 0 { // still receive what is pending
		select {
		case <-memoryNotified:
			return memoryNotification
		case complete := <-completions:
			e.contained(complete)
			return completed
		default:
			return timedOut
		}
	}
	timer := e.deps.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return canceled
	case <-memoryNotified:
		return memoryNotification
	case complete := <-completions:
		e.contained(complete)
		return completed
	case <-timer.C():
		return timedOut
	}
}

// synchronize measures, evaluates and acts once. It returns when to run again. It starts slow
// work in the background.
func (e *Evictor) synchronize(ctx context.Context) time.Duration {
	levels, err := e.measure(ctx)
	if err != nil {
		if ctx.Err() == nil {
			e.logMeasureError(err)
		}
		return period
	}
	e.logMeasureError(nil)
	now := e.deps.Clock.Now()
	e.applyEvaluation(evaluate(e.state, e.thresholds, levels, e.cfg.PressureTransitionPeriod, now))
	e.enforceLimits(ctx, now)
	e.nearThreshold = nearThreshold(e.state, e.thresholds, levels, now)
	wait := e.giveUpOnStuckPods(now)
	return min(wait, e.act(ctx, levels, now))
}

// measure reads the levels, and requests a notification when memory falls to a threshold.
func (e *Evictor) measure(ctx context.Context) (Levels, error) {
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	signals, err := e.deps.Stats.Signals(ctx)
	if err != nil {
		return nil, err
	}
	if signals.Images != nil && e.layout == nil {
		e.layout = &Layout{OwnImageFs: signals.OwnImageFs, OwnContainerFs: signals.OwnContainerFs}
		e.thresholds = e.layout.withContainerFs(e.cfg.Thresholds)
		// The indexes of metSince and due are those of the old list.
		e.state = evaluation{lastMet: e.state.lastMet, conditions: e.state.conditions}
	}
	if e.deps.MemoryNotifier != nil {
		if err := e.deps.MemoryNotifier.SetThresholds(memoryThresholds(e.thresholds, signals)); err != nil {
			e.log.Debug("eviction: set memory thresholds failed", "err", err)
		}
	}
	return levelsFrom(signals), nil
}

// act handles the thresholds that are due. It returns when to check again.
func (e *Evictor) act(ctx context.Context, levels Levels, now time.Time) time.Duration {
	wait := nextCheck(e.state, e.thresholds, levels, now)
	if len(e.state.due) == 0 {
		e.reclaimed.result = nil
		e.resetBackoff()
		return wait
	}
	due := e.actionable(levels, now)
	if len(due) == 0 {
		return min(wait, settlingInterval)
	}
	if remaining := e.retry.at.Sub(now); remaining > 0 && !e.anyEvictable() {
		return min(wait, remaining)
	}
	switch e.reclaim(ctx, levels, due) {
	case podEvicted:
		e.resetBackoff()
		return 0
	case inProgress:
		return wait
	}
	return min(wait, e.backOff(now))
}

// anyEvictable reports whether there is a pod that could be evicted.
func (e *Evictor) anyEvictable() bool {
	return slices.ContainsFunc(e.deps.Pods.Active(), e.evictable)
}

// evictable reports whether evicting the pod can help. A static pod would not come back, the
// node needs its other critical pods, and a stuck pod does not terminate.
func (e *Evictor) evictable(p *v1.Pod) bool {
	l := e.terminating[p.UID]
	return !pod.IsCritical(p) && (l == nil || !l.stuck)
}

// alreadyKilled reports whether the pod's processes are dead already, so that evicting it
// frees no more memory. Such a pod has no usage either, and would rank first for that.
func (e *Evictor) alreadyKilled(p *v1.Pod, s Signal) bool {
	l := e.terminating[p.UID]
	return l != nil && ofMemory(s) && e.deps.Clock.Now().After(l.killedBy)
}

// retryState is the state of attempts that find no pod to evict.
type retryState struct {
	delay backoff.Backoff
	at    time.Time // of the next attempt; zero if the last one succeeded
}

// backOff returns how long to wait after an attempt that found no pod to evict. It grows,
// because each attempt searches for images and containers to remove.
func (e *Evictor) backOff(now time.Time) time.Duration {
	if e.retry.at.IsZero() {
		e.log.Warn("eviction: threshold met, but no pod can be evicted", "resource", signalInfos[e.thresholds[e.state.due[0]].Signal].resource)
	}
	wait := e.retry.delay.Next()
	e.retry.at = now.Add(wait)
	return wait
}

func (e *Evictor) resetBackoff() {
	e.retry.delay.Reset()
	e.retry.at = time.Time{}
}

// logMeasureError logs an error once when it begins or changes, and its end.
func (e *Evictor) logMeasureError(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == e.lastError {
		return
	}
	e.lastError = text
	if err != nil {
		e.log.Error("eviction: read signals failed", "err", err)
		return
	}
	e.log.Info("eviction: reading signals works again")
}
