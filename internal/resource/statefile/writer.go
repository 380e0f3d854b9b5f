package statefile

import (
	"context"
	"sync"
)

// Writer writes a state file aside from the goroutine that changes the state: the sync loop must not wait for
// the disk. Whoever acts on a change must call Written first. One write serves all callers that wait.
type Writer struct {
	write     func() error
	semaphore chan struct{} // holds one token; the goroutine that takes it writes

	mu      sync.Mutex
	changes uint64 // number of changes so far
	written uint64 // number of changes that the file has
}

// NewWriter returns a Writer. write writes the current state; it is called by one goroutine at a time, without a
// lock.
func NewWriter(write func() error) *Writer {
	w := &Writer{write: write, semaphore: make(chan struct{}, 1)}
	w.semaphore <- struct{}{}
	return w
}

// Changed records that the state, which the caller may have locked, has changed. It does not block.
func (w *Writer) Changed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes++
}

// Written returns when the file has all changes so far. It writes the file itself, unless another caller has done
// so meanwhile.
func (w *Writer) Written(ctx context.Context) error {
	upTo, done := w.pending(0)
	if done {
		return nil
	}
	select {
	case <-w.semaphore:
		defer func() { w.semaphore <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	all, done := w.pending(upTo)
	if done {
		return nil
	}
	if err := w.write(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = all
	return nil
}

// pending returns the number of changes so far, and whether the file has the first upTo of them; zero is all.
func (w *Writer) pending(upTo uint64) (changes uint64, done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if upTo == 0 {
		upTo = w.changes
	}
	return w.changes, w.written >= upTo
}
