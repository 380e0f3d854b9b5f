package eviction

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

const (
	// settlePeriod is how long a disk may take to show the space that an evicted pod has
	// released: runtimes remove writable layers some seconds later.
	settlePeriod = 10 * time.Second
	// settlingInterval is the time between checks meanwhile.
	settlingInterval = 500 * time.Millisecond
	// minSlackBytes and minSlackInodes are the least by which a disk may fill up meanwhile:
	// other pods write their logs there.
	minSlackBytes, minSlackInodes = 16 << 20, 100
)

// settlingDisk is a disk signal for which a pod has been evicted.
type settlingDisk struct {
	deadline time.Time
	// available is the level at the first check after the pod was gone; nil until then.
	available *int64
}

// startSettling gives disks time to show that a pod is gone.
func (e *Evictor) startSettling(backing []Signal) {
	for _, s := range urgency {
		if signalInfos[s].condition == v1.NodeDiskPressure && slices.Contains(backing, e.currentLayout().backing(s)) {
			e.settling[s] = settlingDisk{deadline: e.deps.Clock.Now().Add(settlePeriod)}
		}
	}
}

// actionable returns the thresholds that are due and need an action now. It leaves out those
// that a terminating pod will relieve, and those of a settling disk that no longer fills up.
func (e *Evictor) actionable(levels Levels, now time.Time) []int {
	for signal, s := range e.settling {
		if level, known := levels[signal]; known && s.available == nil {
			s.available = &level.Available
			e.settling[signal] = s
		}
	}
	return slices.DeleteFunc(slices.Clone(e.state.due), func(i int) bool {
		t := e.thresholds[i]
		s, settling := e.settling[t.Signal]
		return e.beingReclaimed(t) || settling && now.Before(s.deadline) && levels[t.Signal].Available >= *s.available-slack(t, levels[t.Signal].Capacity, *s.available)
	})
}

// slack is by how much a disk may fill up while it settles: a fraction of the threshold, and
// no more than half of what was available.
func slack(t Threshold, capacity, available int64) int64 {
	least := int64(minSlackBytes)
	if signalInfos[t.Signal].resource == resourceInodes {
		least = minSlackInodes
	}
	return min(max(t.floor(capacity, false)/20, least), available/2)
}
