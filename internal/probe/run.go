package probe

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"swiftlet/internal/pod"
)

// Run asks what is due until ctx ends, and returns when no asking is under way.
func (p *Prober) Run(ctx context.Context) error {
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() { p.changed.run(ctx) })
	for {
		due, wait := p.next()
		for _, s := range due {
			asking.Go(func() { p.ask(ctx, s) })
		}
		if !p.rest(ctx, wait) {
			return nil
		}
	}
}

// rest sleeps until the next probe is due or the heap changes; false means the end.
func (p *Prober) rest(ctx context.Context, wait time.Duration) bool {
	var due <-chan time.Time
	if wait > 0 {
		timer := p.deps.Clock.NewTimer(wait)
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-p.poke:
	case <-due:
	}
	return true
}

// next takes what is due off the heap and says how long until the next is; zero means
// that there is none.
func (p *Prober) next() (due []asked, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.deps.Clock.Now()
	for len(p.due) > 0 {
		head := p.due[0]
		if left := head.at.Sub(now); left > 0 {
			return due, left
		}
		heap.Pop(&p.due)
		if p.skips(head) {
			head.at = now.Add(period(head.target.Probe)) // or when its startup probe passes
			heap.Push(&p.due, head)
			continue
		}
		due = append(due, asked{head, head.target, head.outOfTurn(now)})
	}
	return due, 0
}

// asked is one asking: the state it belongs to and whom it asks, copied under the lock.
type asked struct {
	state     *state
	target    Target
	outOfTurn bool
}

// skips reports whether a probe must not be asked now: liveness and readiness wait for the
// startup probe, which is not asked again once it passed.
func (p *Prober) skips(s *state) bool {
	if s.kind == startup {
		return false
	}
	gate := p.probes[key{s.container, startup}]
	return gate != nil && gate.result != pod.Passed
}

// again puts a probe back on the heap for its next asking. Called under the lock.
func (p *Prober) again(s *state, now time.Time) {
	if p.probes[s.key] != s || s.final() {
		return
	}
	if s.at = s.next(now); s.at.Before(now) { // an asking took longer than its period, or the machine slept
		s.at = now
	}
	heap.Push(&p.due, s)
}

// ask asks once and takes down the answer.
func (p *Prober) ask(ctx context.Context, a asked) {
	limit := time.Duration(a.target.Probe.TimeoutSeconds) * time.Second
	if limit <= 0 {
		limit = time.Second
	}
	checkCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := p.deps.Clock.Now()
	answer := p.deps.Checker.Check(checkCtx, a.target)
	took := p.deps.Clock.Since(began)
	if ctx.Err() != nil {
		return // the agent ends: the answer means nothing
	}

	p.mu.Lock()
	if p.probes[a.state.key] != a.state {
		p.mu.Unlock()
		return // the container is gone meanwhile
	}
	p.metrics.count(a, answer, took)
	before := a.state.result
	a.state.take(answer, a.outOfTurn)
	after := a.state.result
	p.again(a.state, p.deps.Clock.Now())
	if a.state.kind == startup && before != after {
		p.hasten(a.state.container)
	}
	p.mu.Unlock()

	p.wake()
	if !a.outOfTurn {
		p.tell(a, answer)
	}
	if before != after {
		p.changed.add(a.target.Pod.UID)
	}
}

// hasten asks the probes that waited for a startup probe as soon as their own delays allow.
// Called under the lock.
func (p *Prober) hasten(container string) {
	for _, k := range []kind{liveness, readiness} {
		if s := p.probes[key{container, k}]; s != nil && s.index >= 0 {
			s.due(p.deps.Clock.Now())
			heap.Fix(&p.due, s.index)
		}
	}
}
