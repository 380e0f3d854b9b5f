package notify

import (
	"slices"
	"sync"
)

// Topic passes what is published to every subscriber. It connects a publisher with
// subscribers that are built after it. The zero value has no subscribers.
type Topic[T any] struct {
	mu          sync.Mutex
	subscribers []func(T)
}

// Subscribe has f called with everything that is published from now on, by the goroutine
// that publishes it: f must not block.
func (t *Topic[T]) Subscribe(f func(T)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscribers = append(t.subscribers, f)
}

// Publish calls the subscribers in the order in which they subscribed.
func (t *Topic[T]) Publish(value T) {
	t.mu.Lock()
	subscribers := slices.Clip(t.subscribers)
	t.mu.Unlock()
	for _, f := range subscribers {
		f(value)
	}
}
