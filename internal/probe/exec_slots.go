package probe

import (
	"context"
	"sync"
	"time"

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

// execSlots is a semaphore that bounds how many exec probes start concurrently. Waiting probes
// get slots in the order of their arrival.
type execSlots struct {
	slots chan struct{}
	clock clock.WithDelayedExecution
}

func newExecSlots(cores int, clock clock.WithDelayedExecution) execSlots {
	return execSlots{slots: make(chan struct{}, cores*execSlotsPerCore), clock: clock}
}

// acquire waits for a slot; false means that ctx is done. The caller releases the slot.
func (e execSlots) acquire(ctx context.Context) (release func(), ok bool) {
	select {
	case e.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	free := sync.OnceFunc(func() { <-e.slots })
	timer := e.clock.AfterFunc(execSlotHold, free)
	return func() { timer.Stop(); free() }, true
}
