package probe

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// execSlotsPerCore bounds the commands that start at the same time. Each start costs the
	// runtime CPU time: on two cores containerd ran 44 commands a second two at a time, 61
	// four at a time, and never more than 62. Beyond that only their durations grew: p99 was
	// 0.13 s with four at a time, 0.58 s with 16 and 2.7 s with 100, where the usual timeout
	// is one second.
	execSlotsPerCore = 2
	// execSlotHold is how long a command counts against the bound. A command that runs for
	// longer has long started and mostly waits, so a few that hang do not keep the others
	// from running.
	execSlotHold = time.Second
)

// execSlots bounds how many commands of probes start at the same time. Those that wait get
// their slots in the order in which they came.
type execSlots struct {
	taken chan struct{}
	clock clock.WithDelayedExecution
}

func newExecSlots(cores int, clock clock.WithDelayedExecution) execSlots {
	return execSlots{taken: make(chan struct{}, cores*execSlotsPerCore), clock: clock}
}

// take waits for a slot; false means that ctx ended. The caller releases the slot.
func (e execSlots) take(ctx context.Context) (release func(), ok bool) {
	select {
	case e.taken <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	free := sync.OnceFunc(func() { <-e.taken })
	timer := e.clock.AfterFunc(execSlotHold, free)
	return func() { timer.Stop(); free() }, true
}
