package eviction

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Level is how much of a resource is available.
type Level struct {
	Available, Capacity int64
	At                  time.Time
}

// Levels are the measured levels; a signal that could not be measured is absent.
type Levels map[Signal]Level

// text formats the level for messages.
func (l Level) text(s Signal) string {
	format := resource.BinarySI
	if r := signalInfos[s].resource; r == resourceInodes || r == resourcePIDs {
		format = resource.DecimalSI
	}
	return resource.NewQuantity(l.Available, format).String()
}

// evaluation is the state of all thresholds. It is a value: evaluate returns a new one.
type evaluation struct {
	// metSince holds, for each threshold that is met, when it was first seen to be met, by
	// index in the list.
	metSince map[int]time.Time
	// due are the indexes of those whose grace period is over.
	due []int
	// lastMet is when a threshold of each condition was last met.
	lastMet map[v1.NodeConditionType]time.Time
	// conditions are the current ones. They outlast their thresholds by the transition
	// period, so that they do not flap.
	conditions []v1.NodeConditionType
}

// conditionOrder is the order in which conditions are listed.
var conditionOrder = []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure}

// evaluate computes the next evaluation from the previous one and the current levels. The
// thresholds must be the same each time. An absent level meets no threshold.
func evaluate(previous evaluation, thresholds []Threshold, levels Levels, transition time.Duration, now time.Time) evaluation {
	next := evaluation{metSince: map[int]time.Time{}, lastMet: maps.Clone(previous.lastMet)}
	if next.lastMet == nil {
		next.lastMet = map[v1.NodeConditionType]time.Time{}
	}
	for i, t := range thresholds {
		level, known := levels[t.Signal]
		if !known || level.Available >= t.floor(level.Capacity, slices.Contains(previous.due, i)) {
			continue
		}
		since, met := previous.metSince[i]
		if !met {
			since = now
		}
		next.metSince[i] = since
		next.lastMet[signalInfos[t.Signal].condition] = now
		if now.Sub(since) >= t.GracePeriod {
			next.due = append(next.due, i)
		}
	}
	for _, c := range conditionOrder {
		if at, ok := next.lastMet[c]; ok && now.Sub(at) < transition || ok && at.Equal(now) {
			next.conditions = append(next.conditions, c)
		}
	}
	return next
}

// aboveThresholds reports whether no threshold is met any more, minimum reclaim included.
func aboveThresholds(thresholds []Threshold, levels Levels) bool {
	for _, t := range thresholds {
		if level, known := levels[t.Signal]; known && level.Available < t.floor(level.Capacity, true) {
			return false
		}
	}
	return true
}
