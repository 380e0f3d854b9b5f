// Package queue has a deduplicating queue whose Add never blocks.
package queue

import (
	"context"

	"k8s.io/client-go/util/workqueue"
)

// Unique delivers items in the order in which they were added. An item that is added again while
// it is queued is delivered once. One that is added again during its delivery is delivered a
// second time, so that the receiver misses no change.
type Unique[T comparable] struct {
	queued workqueue.TypedInterface[T]
	out    chan T
}

// NewUnique returns an empty queue; Run starts it.
func NewUnique[T comparable]() *Unique[T] {
	return &Unique[T]{queued: workqueue.NewTyped[T](), out: make(chan T)}
}

// Add adds an item. It never blocks.
func (q *Unique[T]) Add(item T) { q.queued.Add(item) }

// C delivers the items while Run runs.
func (q *Unique[T]) C() <-chan T { return q.out }

// Run delivers until ctx is done. It may be called once.
func (q *Unique[T]) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, q.queued.ShutDown)()
	for {
		item, shutdown := q.queued.Get()
		if shutdown {
			return
		}
		q.queued.Done(item)
		select {
		case q.out <- item:
		case <-ctx.Done():
			return
		}
	}
}
