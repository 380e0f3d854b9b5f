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
	// slackBytes and slackInodes are what a disk may fill up by meanwhile, at least: others
	// write their logs there.
	slackBytes, slackInodes = 16 << 20, 100
)

// settle is a disk's want that a pod has been evicted for.
type settle struct {
	until time.Time
	// left is how much there was when it was first looked after the pod had gone; nil until
	// then.
	left *int64
}

// settles begins to wait for disks to show that a pod is gone.
func (e *Evictor) settles(places []Signal) {
	for _, s := range order {
		if traits[s].condition == v1.NodeDiskPressure && slices.Contains(places, e.layoutOf().place(s)) {
			e.settling[s] = settle{until: e.deps.Clock.Now().Add(settling)}
		}
	}
}

// urgent are those of the thresholds that are due which something must be done about now: not
// those that a pod goes for already, nor those of a disk that settles and does not fill up any
// more.
func (e *Evictor) urgent(levels Levels, now time.Time) []int {
	for signal, s := range e.settling {
		if level, known := levels[signal]; known && s.left == nil {
			s.left = &level.Available
			e.settling[signal] = s
		}
	}
	return slices.DeleteFunc(slices.Clone(e.state.due), func(i int) bool {
		t := e.thresholds[i]
		s, found := e.settling[t.Signal]
		return e.held(t) || found && now.Before(s.until) && levels[t.Signal].Available >= *s.left-slack(t, levels[t.Signal].Capacity, *s.left)
	})
}

// slack is by how much a disk may fill up while it settles: a little of the threshold, and no
// more than half of what was left.
func slack(t Threshold, capacity, left int64) int64 {
	least := int64(slackBytes)
	if traits[t.Signal].resource == resourceInodes {
		least = slackInodes
	}
	return min(max(t.floor(capacity, false)/20, least), left/2)
}
