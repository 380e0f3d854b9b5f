package probe

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"swiftlet/internal/pod"
)

// Run runs the probes that are due until ctx is done, and returns when no run is in progress.
func (p *Prober) Run(ctx context.Context) error {
	var runs sync.WaitGroup
	defer runs.Wait()
	runs.Go(func() { p.changed.Run(ctx) })
	runs.Go(func() { p.save(ctx) })
	for {
		due, wait := p.next()
		for _, s := range due {
			runs.Go(func() { p.runProbe(ctx, s) })
		}
		if !p.waitForDue(ctx, wait) {
			return nil
		}
	}
}

// waitForDue waits until the next probe is due or the heap changes; false means that ctx is done.
func (p *Prober) waitForDue(ctx context.Context, wait time.Duration) bool {
	var due <-chan time.Time
	if wait > 0 {
		timer := p.deps.Clock.NewTimer(wait)
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-p.heapChanged:
	case <-due:
	}
	return true
}

// next removes the probes that are due from the heap, and returns the time until the next one;
// zero means that there is none.
func (p *Prober) next() (due []probeRun, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.deps.Clock.Now()
	for len(p.due) > 0 {
		head := p.due[0]
		if remaining := head.at.Sub(now); remaining > 0 {
			return due, remaining
		}
		heap.Pop(&p.due)
		if p.waitsForStartup(head) {
			head.at = now.Add(period(head.target.Probe)) // or when its startup probe passes
			heap.Push(&p.due, head)
			continue
		}
		due = append(due, probeRun{head, head.target, head.early(now)})
	}
	return due, 0
}

// probeRun is one run of a probe; target is a copy made under mu.
type probeRun struct {
	state  *state
	target Target
	early  bool
}

// waitsForStartup reports whether a liveness or readiness probe must wait for the startup probe
// to pass.
func (p *Prober) waitsForStartup(s *state) bool {
	if s.kind == startup {
		return false
	}
	gate := p.probes[key{s.container, startup}]
	return gate != nil && gate.result != pod.Passed
}

// reschedule puts a probe back on the heap after a run that began at ran. The caller holds mu.
func (p *Prober) reschedule(s *state, ran time.Time) {
	if p.probes[s.key] != s || s.final() {
		return
	}
	s.held = false
	s.at = s.next(ran, p.deps.Clock.Now())
	heap.Push(&p.due, s)
}

// runProbe runs a probe once and records the outcome.
func (p *Prober) runProbe(ctx context.Context, a probeRun) {
	began, outcome := p.check(ctx, a)
	took := p.deps.Clock.Since(began)
	if ctx.Err() != nil {
		return // shutting down: the outcome means nothing
	}

	p.mu.Lock()
	if p.probes[a.state.key] != a.state || a.state.final() {
		p.mu.Unlock()
		return // the container is gone, or a published status says that it has started
	}
	p.metrics.count(a, outcome, took)
	before := a.state.result
	a.state.update(outcome, a.early)
	after := a.state.result
	p.reschedule(a.state, began)
	p.record(a, outcome)
	if a.state.kind == startup && before != after {
		p.scheduleAfterStartup(a.state.container)
	}
	p.mu.Unlock()

	p.heapChanged.Notify()
	p.logOutcome(a, outcome)
	if !a.early {
		p.recordEvent(a, outcome)
	}
	if before != after {
		p.logChange(a, after)
		p.changed.Add(a.target.Pod.UID)
		p.markUnsaved(a.state.kind)
	}
}

// check runs the check with the probe's timeout, which begins when an exec probe has its slot.
// The runtime enforces the timeout of a command; a deadline of ours must not come first.
func (p *Prober) check(ctx context.Context, a probeRun) (began time.Time, outcome Outcome) {
	if a.target.Probe.Exec != nil {
		release, ok := p.slots.acquire(ctx, a.target.Pod.UID)
		if !ok {
			return began, outcome
		}
		defer release()
		if !p.isWatched(a.state) {
			return began, outcome // the container is gone
		}
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout(a.target.Probe))
		defer cancel()
	}
	began = p.deps.Clock.Now()
	err := p.deps.Panics.Call("probe", func() error { outcome = p.deps.Checker.Check(ctx, a.target); return nil },
		pod.RefOf(a.target.Pod).Attr(), "container", a.target.Container.Name)
	if err != nil {
		return began, errored(err)
	}
	return began, outcome
}

// isWatched reports whether the probe has not been removed or replaced.
func (p *Prober) isWatched(s *state) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.probes[s.key] == s
}

// scheduleAfterStartup schedules the probes that waited for a startup probe, as soon as their
// initial delays allow. The caller holds mu.
func (p *Prober) scheduleAfterStartup(container string) {
	for _, k := range []kind{liveness, readiness} {
		if s := p.probes[key{container, k}]; s != nil && s.index >= 0 {
			s.scheduleFirst(p.deps.Clock.Now())
			heap.Fix(&p.due, s.index)
		}
	}
}
