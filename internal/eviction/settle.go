package eviction

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

const (
	// settling is how long a disk may take to show what an evicted pod has given back: runtimes
	// remove what containers wrote some seconds later.
	settling = 10 * time.Second
	// settlingLook is how often it is looked meanwhile.
	settlingLook = 500 * time.Millisecond
)

// settle is a disk's want that a pod has been evicted for.
type settle struct {
	until time.Time
	left  int64 // how much there was when the pod had gone
}

// settles begins to wait for the disks to show that a pod is gone: several signals may be of
// the same one.
func (e *Evictor) settles(evictedFor Signal, levels Levels) {
	if traits[evictedFor].condition != v1.NodeDiskPressure {
		return
	}
	for s, level := range levels {
		if traits[s].condition == v1.NodeDiskPressure {
			e.settling[s] = settle{e.deps.Clock.Now().Add(settling), level.Available}
		}
	}
}

// urgent are those of the thresholds that are due which something must be done about now. A
// disk that does not fill up any more may settle first.
func (e *Evictor) urgent(levels Levels, now time.Time) []int {
	return slices.DeleteFunc(slices.Clone(e.state.due), func(i int) bool {
		signal := e.thresholds[i].Signal
		s, found := e.settling[signal]
		return found && now.Before(s.until) && levels[signal].Available >= s.left
	})
}
