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

// toldWithin is how long the runtime may take to tell where its disks are, which it is asked
// until that is known. Memory is not kept waiting for it: twice this is within a second.
const toldWithin = 400 * time.Millisecond

// Run watches the node until ctx ends.
func (e *Evictor) Run(ctx context.Context) error {
	if len(e.cfg.Thresholds) == 0 && !e.cfg.Limits {
		<-ctx.Done()
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	if e.deps.Alarm != nil {
		group.Go(func() error {
			if err := e.deps.Alarm.Run(ctx, e.rung.Notify); err != nil && ctx.Err() == nil {
				e.log.Warn("the kernel does not tell when memory runs short, looking must do", "err", err)
			}
			return nil
		})
	}
	group.Go(func() error {
		defer e.asides.Wait()
		for rang := false; ctx.Err() == nil; {
			wait := e.look(ctx)
			e.deaf = deafFor(e.deaf, rang && wait > 0 && !e.near)
			rang = e.rest(ctx, wait)
		}
		return nil
	})
	return group.Wait()
}

// rest waits until the next look is due, and reports whether that is because the alarm rang.
// Nothing cuts the pause short, and no ring the time for which it is deaf to them.
func (e *Evictor) rest(ctx context.Context, wait time.Duration) (rang bool) {
	deaf := max(pause, min(e.deaf, wait))
	return e.sleep(ctx, pause, nil, nil) == timedOut &&
		e.sleep(ctx, deaf-pause, nil, e.thens) == timedOut &&
		e.sleep(ctx, wait-deaf, e.rung, e.thens) == rung
}

// wakening is why sleep came to its end.
type wakening int

const (
	timedOut wakening = iota
	rung
	told // something was to be done in the loop, and is
	ended
)

// sleep waits for d, or until ctx ends, it is rung, or there is something to be done in the
// loop.
func (e *Evictor) sleep(ctx context.Context, d time.Duration, rings <-chan struct{}, thens <-chan func()) wakening {
	if d <= 0 { // still take what is there
		select {
		case <-rings:
			return rung
		case then := <-thens:
			then()
			return told
		default:
			return timedOut
		}
	}
	timer := e.deps.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ended
	case <-rings:
		return rung
	case then := <-thens:
		then()
		return told
	case <-timer.C():
		return timedOut
	}
}

// look measures, judges and acts once. It returns when to look again. Nothing in it takes
// long: that is done aside.
func (e *Evictor) look(ctx context.Context) time.Duration {
	levels, err := e.measure(ctx)
	if err != nil {
		if ctx.Err() == nil {
			e.say(fmt.Sprintf("it is not known what is left: %v", err))
		}
		return period
	}
	e.say("")
	now := e.deps.Clock.Now()
	e.judged(judge(e.state, e.thresholds, levels, e.cfg.Transition, now))
	e.enforceLimits(ctx, now)
	e.near = near(e.state, e.thresholds, levels, now)
	patient := e.waitForLeaving(now)
	return min(patient, e.act(ctx, levels, now))
}

// measure finds out what is left, and has the alarm ring when that falls to a threshold.
func (e *Evictor) measure(ctx context.Context) (Levels, error) {
	ctx, cancel := context.WithTimeout(ctx, toldWithin)
	defer cancel()
	signals, err := e.deps.Stats.Signals(ctx)
	if err != nil {
		return nil, err
	}
	if signals.Images != nil && e.layout == nil {
		e.layout = &Layout{OwnImageFs: signals.OwnImageFs, OwnContainerFs: signals.OwnContainerFs}
		e.thresholds = e.layout.complete(e.cfg.Thresholds)
		e.state = verdict{seen: e.state.seen, conditions: e.state.conditions} // the list is another one now
	}
	if e.deps.Alarm != nil {
		if err := e.deps.Alarm.Set(marks(e.thresholds, signals)); err != nil {
			e.log.Debug("alarm not set", "err", err)
		}
	}
	return levelsOf(signals), nil
}

// act does something about what is due, if anything. It returns when to look again.
func (e *Evictor) act(ctx context.Context, levels Levels, now time.Time) time.Duration {
	wait := nextLook(e.state, e.thresholds, levels, now)
	if len(e.state.due) == 0 {
		e.found = nil
		e.forgetFailures()
		return wait
	}
	due := e.urgent(levels, now)
	if len(due) == 0 {
		return min(wait, settlingLook)
	}
	if rest := e.retryAt.Sub(now); rest > 0 && !e.anybody() {
		return min(wait, rest)
	}
	switch e.relieve(ctx, levels, due) {
	case helped:
		e.forgetFailures()
		return 0
	case underWay:
		return wait
	}
	return min(wait, e.putOff(now))
}

// anybody reports whether there is a pod that could be evicted.
func (e *Evictor) anybody() bool {
	return slices.ContainsFunc(e.deps.Pods.Active(), e.mayGo)
}

// mayGo reports whether it is of any use to evict the pod. A static one would not come back,
// other critical ones are what the node needs, and of some it is known that they do not end.
func (e *Evictor) mayGo(p *v1.Pod) bool {
	l := e.leaving[p.UID]
	return !pod.IsCritical(p) && (l == nil || !l.stuck)
}

// spent reports whether a pod was killed already, so that nothing more can be done about what
// memory it may have. One of which nothing runs any more cannot be measured, either, and would
// come before those that are to blame.
func (e *Evictor) spent(p *v1.Pod, s Signal) bool {
	l := e.leaving[p.UID]
	return l != nil && ofMemory(s) && e.deps.Clock.Now().After(l.killed)
}

// putOff is how long to leave it at that when nothing can be done: longer each time, for
// trying means to look for what could be removed.
func (e *Evictor) putOff(now time.Time) time.Duration {
	if e.retryAt.IsZero() {
		e.log.Warn("the node is short of a resource, and no pod can be evicted", "resource", traits[e.thresholds[e.state.due[0]].Signal].resource)
	}
	wait := e.retries.Next()
	e.retryAt = now.Add(wait)
	return wait
}

// forgetFailures has the next failure be the first.
func (e *Evictor) forgetFailures() {
	e.retries.Reset()
	e.retryAt = time.Time{}
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
