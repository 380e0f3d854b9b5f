package stats

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"

	"swiftlet/internal/contain"
)

// maxWait is the age from which callers no longer wait for a measurement. A volume that hangs,
// or takes minutes to walk, delays its callers by that much once.
const maxWait = 3 * time.Second

// expiry is when the result for a volume that is no longer requested is dropped.
const expiry = time.Hour

// measurements caches the last result for each volume, and runs at most one measurement of
// each at a time. A measurement goes on when its callers leave, and serves the next caller. It
// cannot be canceled: a dead file system blocks it in the kernel, at the cost of one thread for
// each such volume.
type measurements struct {
	clock  clock.Clock
	panics contain.Reporter
	mu     *sync.Mutex
	byDir  map[string]*measurement
}

type measurement struct {
	last  volumeResult
	began time.Time     // of the measurement in progress
	done  chan struct{} // closed at its end; nil while none is in progress
}

// volumeResult is the result of measuring a volume.
type volumeResult struct {
	at    time.Time
	stats statsapi.FsStats
	used  diskUsage // of a file system that the volume shares
	err   error
	// cacheable is false for a result that is cheap to get again. Any other is valid for
	// minAge at least.
	cacheable bool
	minAge    time.Duration
}

var errNotMeasured = errors.New("volume is not measured yet")

func newMeasurements(clock clock.Clock, panics contain.Reporter) measurements {
	return measurements{clock: clock, panics: panics, mu: new(sync.Mutex), byDir: map[string]*measurement{}}
}

// start starts to measure a volume, unless that is in progress or the last result is not older
// than fresh.
func (m *measurements) start(dir string, fresh time.Duration, measure func() volumeResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	v := m.byDir[dir]
	if v != nil && (v.done != nil || v.last.cacheable && now.Before(v.last.at.Add(max(fresh, v.last.minAge)))) {
		return
	}
	m.drop(func(_ string, last volumeResult) bool { return now.Sub(last.at) > expiry+last.minAge })
	if v = m.byDir[dir]; v == nil {
		v = &measurement{last: volumeResult{err: errNotMeasured}}
		m.byDir[dir] = v
	}
	v.began, v.done = now, make(chan struct{})
	go func() {
		var result volumeResult
		if err := m.panics.Call("stats", func() error { result = measure(); return nil }, "path", dir); err != nil {
			result = volumeResult{at: m.clock.Now(), err: err}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		v.last = result
		close(v.done)
		v.done = nil
	}()
}

// wait waits for the measurement of a volume, if one is in progress, until it is maxWait old.
func (m *measurements) wait(ctx context.Context, dir string) {
	m.mu.Lock()
	var done chan struct{}
	var remaining time.Duration
	if v := m.byDir[dir]; v != nil {
		done, remaining = v.done, v.began.Add(maxWait).Sub(m.clock.Now())
	}
	m.mu.Unlock()
	if done == nil || remaining <= 0 {
		return
	}
	timer := m.clock.NewTimer(remaining)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C():
	case <-ctx.Done():
	}
}

// last is the last result for a volume.
func (m *measurements) last(dir string) volumeResult {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.byDir[dir]; v != nil {
		return v.last
	}
	return volumeResult{err: errNotMeasured}
}

// retain drops the volumes that are not among dirs.
func (m *measurements) retain(dirs map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(func(dir string, _ volumeResult) bool { return !dirs[dir] })
}

// drop drops matching volumes. It keeps those with a measurement in progress, so that no
// second one starts. The caller holds mu.
func (m *measurements) drop(match func(dir string, last volumeResult) bool) {
	maps.DeleteFunc(m.byDir, func(dir string, v *measurement) bool { return v.done == nil && match(dir, v.last) })
}
