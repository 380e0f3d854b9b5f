package eviction

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Run watches the node until ctx ends.
func (e *Evictor) Run(ctx context.Context) error {
	if len(e.cfg.Thresholds) == 0 && !e.cfg.Limits {
		<-ctx.Done()
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	if e.deps.Alarm != nil {
		group.Go(func() error {
			if err := e.deps.Alarm.Run(ctx, e.ring); err != nil && ctx.Err() == nil {
				e.log.Warn("the kernel does not tell when memory runs short, looking must do", "err", err)
			}
			return nil
		})
	}
	group.Go(func() error {
		for ctx.Err() == nil {
			wait := e.look(ctx)
			if e.sleep(ctx, pause, nil) {
				e.sleep(ctx, wait-pause, e.rung)
			}
		}
		return nil
	})
	return group.Wait()
}

// ring has the next look be now. It never blocks.
func (e *Evictor) ring() {
	select {
	case e.rung <- struct{}{}:
	default:
	}
}

// sleep waits for d or the end of ctx, which it tells by false, or until early is ready.
func (e *Evictor) sleep(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := e.deps.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-early:
	case <-timer.C():
	}
	return true
}

// look measures, judges and acts once. It returns when to look again.
func (e *Evictor) look(ctx context.Context) time.Duration {
	signals, err := e.deps.Stats.Signals(ctx)
	if err != nil {
		if ctx.Err() == nil {
			e.say(fmt.Sprintf("it is not known what is left: %v", err))
		}
		return period
	}
	e.say("")
	if signals.Images != nil && e.layout == nil {
		e.layout = &Layout{OwnImageFs: signals.OwnImageFs, OwnContainerFs: signals.OwnContainerFs}
		e.thresholds = e.layout.complete(e.cfg.Thresholds)
		e.state = verdict{seen: e.state.seen, conditions: e.state.conditions} // the list is another one now
	}
	levels, now := levelsOf(signals), e.deps.Clock.Now()
	e.judged(judge(e.state, e.thresholds, levels, e.cfg.Transition, now))
	if e.deps.Alarm != nil {
		if err := e.deps.Alarm.Set(marks(e.thresholds, signals)); err != nil {
			e.log.Debug("alarm not set", "err", err)
		}
	}
	if e.enforceLimits(ctx, now) {
		return 0
	}
	wait := nextLook(e.state, e.thresholds, levels, now)
	if len(e.state.due) == 0 {
		e.inVain = 0
		return wait
	}
	due := e.urgent(levels, now)
	if len(due) == 0 {
		return min(wait, settlingLook)
	}
	if rest := e.again.Sub(now); e.inVain > 0 && rest > 0 && !e.anybody() {
		return min(wait, rest)
	}
	if e.relieve(ctx, levels, due) {
		e.inVain = 0
		return 0
	}
	return min(wait, e.putOff(now))
}

// anybody reports whether there is a pod that could be evicted.
func (e *Evictor) anybody() bool {
	return slices.ContainsFunc(e.deps.Pods.Active(), func(p *v1.Pod) bool { return !pod.IsCritical(p) })
}

// putOff is how long to leave it at that when nothing can be done: longer each time, for
// trying means to look for what could be removed.
func (e *Evictor) putOff(now time.Time) time.Duration {
	if e.inVain == 0 {
		e.log.Warn("the node is short of a resource, and no pod can be evicted", "resource", traits[e.thresholds[e.state.due[0]].Signal].resource)
	}
	e.inVain = min(max(2*e.inVain, retry), period)
	e.again = now.Add(e.inVain)
	return e.inVain
}

// say logs a trouble when it begins and when it is over.
func (e *Evictor) say(trouble string) {
	if trouble == e.trouble {
		return
	}
	e.trouble = trouble
	if trouble != "" {
		e.log.Error("eviction: " + trouble)
		return
	}
	e.log.Info("eviction: it is known again what is left")
}
