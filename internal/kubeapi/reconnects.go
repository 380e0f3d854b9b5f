package kubeapi

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// wakeInterval is the shortest time between two notifications. Behind a load balancer with a dead backend
// every second request fails, and retries must not follow each one that succeeds.
const wakeInterval = time.Minute

// Reconnects wakes the reflectors that wait to retry when the API server responds again: their back-off has
// grown to half a minute in an outage. A nil Reconnects wakes none.
type Reconnects struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	last time.Time
	next chan struct{} // closed at the next notification
}

// NewReconnects returns a Reconnects without notifications.
func NewReconnects(clock clock.PassiveClock) *Reconnects {
	return &Reconnects{clock: clock, next: make(chan struct{})}
}

// Notify wakes all that wait, unless it did so recently.
func (r *Reconnects) Notify() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if !r.last.IsZero() && now.Sub(r.last) < wakeInterval {
		return
	}
	r.last = now
	close(r.next)
	r.next = make(chan struct{})
}

// Next returns a channel that is closed at the next notification.
func (r *Reconnects) Next() <-chan struct{} {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}
