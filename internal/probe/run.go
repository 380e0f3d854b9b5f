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
	asking.Go(func() { p.changed.Run(ctx) })
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

// again puts a probe back on the heap for its next run, after one that began at ran. Called
// under the lock.
func (p *Prober) again(s *state, ran time.Time) {
	if p.probes[s.key] != s || s.final() {
		return
	}
	s.at = s.next(ran, p.deps.Clock.Now())
	heap.Push(&p.due, s)
}

// ask asks once and takes down the answer.
func (p *Prober) ask(ctx context.Context, a asked) {
	began, answer := p.check(ctx, a)
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
	p.again(a.state, began)
	if a.state.kind == startup && before != after {
		p.hasten(a.state.container)
	}
	p.mu.Unlock()

	p.poke.Notify()
	if !a.outOfTurn {
		p.tell(a, answer)
	}
	if before != after {
		p.changed.Add(a.target.Pod.UID)
	}
}

// check runs the check within the probe's timeout, which begins when a command has its slot.
// The runtime ends a command when the timeout is over, and a deadline of ours must not come
// first.
func (p *Prober) check(ctx context.Context, a asked) (began time.Time, answer Answer) {
	if a.target.Probe.Exec != nil {
		release, ok := p.slots.take(ctx)
		if !ok {
			return began, answer
		}
		defer release()
		if !p.has(a.state) {
			return began, answer // the container ended meanwhile
		}
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout(a.target.Probe))
		defer cancel()
	}
	began = p.deps.Clock.Now()
	return began, p.deps.Checker.Check(ctx, a.target)
}

// has reports whether the container of the probe still runs.
func (p *Prober) has(s *state) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.probes[s.key] == s
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
