package probe

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// execSlotsPerCore bounds the commands that start concurrently. Each start costs the
	// runtime CPU time: on two cores containerd ran 44 commands a second two at a time, 61
	// four at a time, and never more than 62. Beyond that only their durations grew: p99 was
	// 0.13 s with four at a time, 0.58 s with 16 and 2.7 s with 100, where the usual timeout
	// is one second.
	execSlotsPerCore = 2
	// execSlotHold is how long a command holds its slot. A command that runs longer mostly
	// waits, so a few that hang must not block the others.
	execSlotHold = time.Second
)

// execSlots is a semaphore that bounds how many exec probes start concurrently. Waiting probes get slots in the order
// of their arrival, but a pod has all but one slot at most, and its further probes wait for each other: a pod with
// many probes would otherwise delay those of all pods.
type execSlots struct {
	slots chan struct{}
	clock clock.WithDelayedExecution

	mu    *sync.Mutex
	turns map[types.UID]*turn
}

// turn has a token for each probe of a pod that has a slot or waits for one.
type turn struct {
	taken  chan struct{}
	probes int // with or without a token
}

func newExecSlots(cores int, clock clock.WithDelayedExecution) execSlots {
	return execSlots{
		slots: make(chan struct{}, cores*execSlotsPerCore), clock: clock,
		mu: new(sync.Mutex), turns: map[types.UID]*turn{},
	}
}

// acquire waits for a slot; false means that ctx is done. The caller releases the slot.
func (e execSlots) acquire(ctx context.Context, of types.UID) (release func(), ok bool) {
	turn, leave := e.join(of)
	for _, tokens := range []chan struct{}{turn.taken, e.slots} {
		select {
		case tokens <- struct{}{}:
		case <-ctx.Done():
			leave() // the agent ends
			return nil, false
		}
	}
	free := sync.OnceFunc(func() {
		<-e.slots
		<-turn.taken
		leave()
	})
	timer := e.clock.AfterFunc(execSlotHold, free)
	return func() { timer.Stop(); free() }, true
}

// join returns the turn of a pod. The caller calls leave at its end.
func (e execSlots) join(of types.UID) (own *turn, leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	own = e.turns[of]
	if own == nil {
		own = &turn{taken: make(chan struct{}, max(1, cap(e.slots)-1))}
		e.turns[of] = own
	}
	own.probes++
	return own, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if own.probes--; own.probes == 0 {
			delete(e.turns, of)
		}
	}
}
