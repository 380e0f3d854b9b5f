package image

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// stallTimeout is how long a pull keeps other pulls waiting. The runtime ends a pull that receives nothing
	// (containerd after five minutes), but not one that receives a byte now and then, and CRI reports no
	// progress.
	stallTimeout = 5 * time.Minute
	// maxStalled is how many pulls may continue without a slot. A further one is canceled.
	maxStalled = 10
)

// pullSlots limits the pulls in progress. A pull that takes longer than stallTimeout continues without its
// slot, so that a registry that delivers next to nothing does not block other images.
type pullSlots struct {
	clock clock.WithDelayedExecution
	free  chan struct{} // has a token for each pull that holds a slot; nil is no limit

	mu      sync.Mutex
	stalled int
}

// stalledError is the cause of the cancellation of a pull.
type stalledError struct{ after time.Duration }

func (e stalledError) Error() string {
	return fmt.Sprintf("canceled after %v: %d other pulls take as long", e.after, maxStalled)
}

// acquire waits for a slot. The context it returns is canceled if too many pulls have stalled. onStall is
// called when the pull loses its slot. done must be called when the pull has ended.
func (s *pullSlots) acquire(ctx context.Context, onStall func()) (pulling context.Context, done func(), err error) {
	if s.free == nil {
		return ctx, func() {}, nil
	}
	select {
	case s.free <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	pulling, cancel := context.WithCancelCause(ctx)
	var stalled, ended bool // guarded by s.mu
	timer := s.clock.AfterFunc(stallTimeout, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if ended {
			return
		}
		if s.stalled >= maxStalled {
			cancel(stalledError{stallTimeout})
			return
		}
		s.stalled++
		stalled = true
		<-s.free
		onStall()
	})
	return pulling, func() {
		timer.Stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		ended = true
		if stalled {
			s.stalled--
		} else {
			<-s.free
		}
		cancel(nil)
	}, nil
}
