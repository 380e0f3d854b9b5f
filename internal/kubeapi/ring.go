package kubeapi

import (
	"sync"

	v1 "k8s.io/api/core/v1"
)

// ring is a ring buffer of events.
type ring struct {
	mu     sync.Mutex
	events []*v1.Event
	next   int
}

func newRing(size int) *ring { return &ring{events: make([]*v1.Event, 0, size)} }

func (r *ring) add(e *v1.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) < cap(r.events) {
		r.events = append(r.events, e)
		return
	}
	r.events[r.next] = e
	r.next = (r.next + 1) % len(r.events)
}

// list returns them oldest first.
func (r *ring) list() []v1.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]v1.Event, 0, len(r.events))
	for i := range r.events {
		all = append(all, *r.events[(r.next+i)%len(r.events)])
	}
	return all
}
