// Package queue holds a queue that never blocks the one who adds.
package queue

import (
	"context"

	"k8s.io/client-go/util/workqueue"
)

// Unique delivers items in the order in which they were added. An item that is added while
// it waits is delivered once. One that is added after it was taken for delivery is delivered
// again: a reader is woken once too often rather than once too few.
type Unique[T comparable] struct {
	waiting workqueue.TypedInterface[T]
	out     chan T
}

// NewUnique starts nothing.
func NewUnique[T comparable]() *Unique[T] {
	return &Unique[T]{waiting: workqueue.NewTyped[T](), out: make(chan T)}
}

// Add never blocks, however slow the reader is.
func (q *Unique[T]) Add(item T) { q.waiting.Add(item) }

// C yields the items while Run runs.
func (q *Unique[T]) C() <-chan T { return q.out }

// Run delivers until ctx is done. It may be called once.
func (q *Unique[T]) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, q.waiting.ShutDown)()
	for {
		item, ended := q.waiting.Get()
		if ended {
			return
		}
		q.waiting.Done(item)
		select {
		case q.out <- item:
		case <-ctx.Done():
			return
		}
	}
}
