package dra

import (
	"context"
	"time"
)

const (
	// patience is for how long a driver may be away before what it offers is withdrawn:
	// pods would be sent here and wait for it.
	patience = 30 * time.Second
	// retry is how long to wait before the API server is asked again.
	retry = 10 * time.Second
)

// offers withdraws what drivers offer that are not there, until ctx is done. A driver that
// comes back offers it again by itself.
func (m *Manager) offers(ctx context.Context) {
	if m.deps.API == nil {
		return
	}
	// Drivers that are there register within moments of the agent's start; of the others it
	// is not known that they ever were, except by what they offer.
	if !m.sleep(ctx, patience) {
		return
	}
	for !m.missing(ctx) {
		if !m.sleep(ctx, retry) {
			return
		}
	}
	for ctx.Err() == nil {
		m.await(ctx, m.poke, m.withdraw(ctx))
	}
}

// await returns when there is news, or after the time, which may be zero for never.
func (m *Manager) await(ctx context.Context, news <-chan struct{}, limit time.Duration) {
	var due <-chan time.Time
	if limit > 0 {
		timer := m.deps.Clock.NewTimer(limit)
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-news:
	case <-due:
	}
}

// missing notes the drivers that offer devices and are not there; false if that could not
// be found out.
func (m *Manager) missing(ctx context.Context) bool {
	names, err := m.deps.API.Drivers(ctx)
	if err != nil {
		m.deps.Log.Warn("it is not known which drivers offer devices of this node", "err", err)
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if _, noted := m.left[name]; !noted && !m.usable(name) {
			m.left[name] = time.Time{} // it was never seen
		}
	}
	return true
}

// withdraw does so for drivers that have been away for long enough. It returns when to look
// again, zero for when a driver has left.
func (m *Manager) withdraw(ctx context.Context) (again time.Duration) {
	m.mu.Lock()
	var due []string
	for name, since := range m.left {
		if rest := patience - m.deps.Clock.Since(since); rest <= 0 {
			due = append(due, name)
		} else if again == 0 || rest < again {
			again = rest
		}
	}
	m.mu.Unlock()
	for _, name := range due {
		if err := m.deps.API.DeleteSlices(ctx, name); err != nil {
			m.deps.Log.Warn("what an absent driver offers could not be withdrawn", "driver", name, "err", err)
			again = retry
			continue
		}
		m.deps.Log.Info("driver is not there: what it offered is withdrawn", "driver", name)
		m.mu.Lock()
		delete(m.left, name)
		m.mu.Unlock()
	}
	return again
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
