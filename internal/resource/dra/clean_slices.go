package dra

import (
	"context"
	"time"
)

const (
	// absenceGrace is how long a driver may be absent before its ResourceSlices are deleted.
	// While they exist, the scheduler sends pods here, which wait for the driver.
	absenceGrace = 30 * time.Second
	// apiRetryInterval is the delay before a failed request to the API server is repeated.
	apiRetryInterval = 10 * time.Second
)

// cleanSlices deletes the ResourceSlices of absent drivers until ctx is done. A driver that
// comes back publishes its slices again.
func (m *Manager) cleanSlices(ctx context.Context) {
	if m.deps.API == nil {
		return
	}
	// Running drivers register soon after the agent's start. The others are known by their
	// slices only.
	if !m.sleep(ctx, absenceGrace) {
		return
	}
	for !m.findAbsentDrivers(ctx) {
		if !m.sleep(ctx, apiRetryInterval) {
			return
		}
	}
	for ctx.Err() == nil {
		m.await(ctx, m.driverLost, m.deleteSlicesOfAbsent(ctx))
	}
}

// await returns on a signal, after the timeout (zero for none), or when ctx is done.
func (m *Manager) await(ctx context.Context, signal <-chan struct{}, timeout time.Duration) {
	var expired <-chan time.Time
	if timeout > 0 {
		timer := m.deps.Clock.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-signal:
	case <-expired:
	}
}

// findAbsentDrivers records the drivers that have ResourceSlices but are not connected. It
// returns false if the list failed.
func (m *Manager) findAbsentDrivers(ctx context.Context) bool {
	names, err := m.deps.API.Drivers(ctx)
	if err != nil {
		m.deps.Log.Warn("dra: cannot list resource slices of this node", "err", err)
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if _, recorded := m.absentSince[name]; !recorded && !m.connectedLocked(name) {
			m.absentSince[name] = time.Time{} // never connected
		}
	}
	return true
}

// deleteSlicesOfAbsent deletes the ResourceSlices of drivers whose absenceGrace has passed. It
// returns when to call it again, zero for when the next driver is lost.
func (m *Manager) deleteSlicesOfAbsent(ctx context.Context) (next time.Duration) {
	m.mu.Lock()
	var due []string
	for name, since := range m.absentSince {
		if left := absenceGrace - m.deps.Clock.Since(since); left <= 0 {
			due = append(due, name)
		} else if next == 0 || left < next {
			next = left
		}
	}
	m.mu.Unlock()
	for _, name := range due {
		if err := m.deps.API.DeleteSlices(ctx, name); err != nil {
			m.deps.Log.Warn("dra: cannot delete resource slices of absent driver", "driver", name, "err", err)
			next = apiRetryInterval
			continue
		}
		m.deps.Log.Info("dra: deleted resource slices of absent driver", "driver", name)
		m.mu.Lock()
		delete(m.absentSince, name)
		m.mu.Unlock()
	}
	return next
}

func (m *Manager) sleep(ctx context.Context, d time.Duration) bool {
	timer := m.deps.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
