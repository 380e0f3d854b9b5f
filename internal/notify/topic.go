package notify

import (
	"slices"
	"sync"
)

// Topic passes published values to every subscriber. It connects a publisher with subscribers
// that are built after it. The zero value has no subscribers.
type Topic[T any] struct {
	mu          sync.Mutex
	subscribers []func(T)
}

// Subscribe makes Publish call f with every value from now on. f runs in the goroutine of the
// publisher and must not block.
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
