package stats

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"
)

// patience is how old a look at a volume becomes before it is waited for no more: a volume
// that hangs, or takes minutes to walk, costs those who ask that much once.
const patience = 3 * time.Second

// stale is when a volume that nobody asks about any more is forgotten.
const stale = time.Hour

// looks remembers what was last found in each volume, and has at most one look at each under
// way. A look goes on when those who wait for it leave, and so serves the next who asks. No
// one ends or waits out a look: a file system that is dead keeps it in the kernel, where it
// costs a thread, one for each such volume.
type looks struct {
	clock clock.Clock
	mu    *sync.Mutex
	known map[string]*look // by directory
}

type look struct {
	last  found
	began time.Time     // the look that is under way
	done  chan struct{} // closed at its end; nil while none is under way
}

// found is what a look at a volume came to.
type found struct {
	at    time.Time
	stats statsapi.FsStats
	part  taken // what the volume takes of a file system that it shares
	err   error
	// kept is false for what is not worth remembering: it is found again when asked for.
	// Anything else is good for rest at least.
	kept bool
	rest time.Duration
}

var errNotSeen = errors.New("the volume is not measured yet")

func newLooks(clock clock.Clock) looks {
	return looks{clock: clock, mu: new(sync.Mutex), known: map[string]*look{}}
}

// begin has a volume measured, unless that is under way or was done no longer than fresh ago.
func (l *looks) begin(dir string, fresh time.Duration, measure func() found) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	v := l.known[dir]
	if v != nil && (v.done != nil || v.last.kept && now.Before(v.last.at.Add(max(fresh, v.last.rest)))) {
		return
	}
	l.forget(func(_ string, last found) bool { return now.Sub(last.at) > stale+last.rest })
	if v = l.known[dir]; v == nil {
		v = &look{last: found{err: errNotSeen}}
		l.known[dir] = v
	}
	v.began, v.done = now, make(chan struct{})
	go func() {
		got := measure()
		l.mu.Lock()
		defer l.mu.Unlock()
		v.last = got
		close(v.done)
		v.done = nil
	}()
}

// await waits for the look at a volume, if one is under way that is not old already.
func (l *looks) await(ctx context.Context, dir string) {
	l.mu.Lock()
	var done chan struct{}
	var left time.Duration
	if v := l.known[dir]; v != nil {
		done, left = v.done, v.began.Add(patience).Sub(l.clock.Now())
	}
	l.mu.Unlock()
	if done == nil || left <= 0 {
		return
	}
	timer := l.clock.NewTimer(left)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C():
	case <-ctx.Done():
	}
}

// last is what the last look that ended found.
func (l *looks) last(dir string) found {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := l.known[dir]; v != nil {
		return v.last
	}
	return found{err: errNotSeen}
}

// keep forgets the volumes that are not among those still there.
func (l *looks) keep(dirs map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(func(dir string, _ found) bool { return !dirs[dir] })
}

// forget is for who holds the lock. A look under way is remembered, lest another join it.
func (l *looks) forget(which func(dir string, last found) bool) {
	maps.DeleteFunc(l.known, func(dir string, v *look) bool { return v.done == nil && which(dir, v.last) })
}
