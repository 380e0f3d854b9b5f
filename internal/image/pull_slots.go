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
	turns   map[string]*turn // by namespace
}

// turn has as many tokens as there are slots, one for each pull of a namespace that waits for a slot or holds
// one. Further pulls wait for those of their own namespace: a pod with many images of slow registries would
// otherwise delay the images of others by stallTimeout for each.
type turn struct {
	taken chan struct{}
	pulls int // with or without a token
}

// stalledError is the cause of the cancellation of a pull.
type stalledError struct{ after time.Duration }

func (e stalledError) Error() string {
	return fmt.Sprintf("canceled after %v: %d other pulls take as long", e.after, maxStalled)
}

// acquire waits for a slot, as long as until has not ended. The context it returns is canceled if too many pulls
// have stalled. onStall is called when the pull loses its slot. done must be called when the pull has ended.
func (s *pullSlots) acquire(ctx, until context.Context, namespace string, onStall func()) (pulling context.Context, done func(), err error) {
	if s.free == nil {
		return ctx, func() {}, nil
	}
	leave, err := s.takeSlot(until, namespace)
	if err != nil {
		return nil, nil, err
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
		leave()
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
			leave()
		}
		cancel(nil)
	}, nil
}

// takeSlot waits for the turn of the namespace, and then for a slot. leave gives both back; it is called with
// the lock held.
func (s *pullSlots) takeSlot(ctx context.Context, namespace string) (leave func(), err error) {
	s.mu.Lock()
	of := s.turns[namespace]
	if of == nil {
		of = &turn{taken: make(chan struct{}, cap(s.free))}
		if s.turns == nil {
			s.turns = map[string]*turn{}
		}
		s.turns[namespace] = of
	}
	of.pulls++
	s.mu.Unlock()
	forget := func() {
		if of.pulls--; of.pulls == 0 {
			delete(s.turns, namespace)
		}
	}
	for _, tokens := range []chan struct{}{of.taken, s.free} {
		select {
		case tokens <- struct{}{}:
		case <-ctx.Done():
			if tokens == s.free {
				<-of.taken
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			forget()
			return nil, ctx.Err()
		}
	}
	return func() { <-s.free; <-of.taken; forget() }, nil
}
