package eviction

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Level is how much is left of something.
type Level struct {
	Available, Capacity int64
	At                  time.Time
}

// Levels are what could be measured.
type Levels map[Signal]Level

// text is how messages tell the level of a signal.
func (l Level) text(s Signal) string {
	format := resource.BinarySI
	if r := traits[s].resource; r == resourceInodes || r == resourcePIDs {
		format = resource.DecimalSI
	}
	return resource.NewQuantity(l.Available, format).String()
}

// verdict is what the levels so far mean. It is a value: judge makes a new one.
type verdict struct {
	// since is when each threshold, by its place in the list, was first seen to be met, of
	// those that are.
	since map[int]time.Time
	// due are those of them whose grace is over.
	due []int
	// seen is when a threshold of each condition was last met.
	seen map[v1.NodeConditionType]time.Time
	// conditions hold now: they outlast their thresholds by the transition period, so that a
	// node at the brink does not go back and forth.
	conditions []v1.NodeConditionType
}

// conditionOrder is how conditions are listed to people.
var conditionOrder = []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure}

// judge works out what the levels mean now, after all that was seen before. The thresholds
// must be the same each time. A level that is not known meets no threshold.
func judge(before verdict, thresholds []Threshold, levels Levels, transition time.Duration, now time.Time) verdict {
	next := verdict{since: map[int]time.Time{}, seen: maps.Clone(before.seen)}
	if next.seen == nil {
		next.seen = map[v1.NodeConditionType]time.Time{}
	}
	for i, t := range thresholds {
		level, known := levels[t.Signal]
		if !known || level.Available >= t.floor(level.Capacity, slices.Contains(before.due, i)) {
			continue
		}
		since, met := before.since[i]
		if !met {
			since = now
		}
		next.since[i] = since
		next.seen[traits[t.Signal].condition] = now
		if now.Sub(since) >= t.Grace {
			next.due = append(next.due, i)
		}
	}
	for _, c := range conditionOrder {
		if at, ok := next.seen[c]; ok && now.Sub(at) < transition || ok && at.Equal(now) {
			next.conditions = append(next.conditions, c)
		}
	}
	return next
}

// relieved reports whether no threshold is met any more, margins included: then nothing is
// left to do.
func relieved(thresholds []Threshold, levels Levels) bool {
	for _, t := range thresholds {
		if level, known := levels[t.Signal]; known && level.Available < t.floor(level.Capacity, true) {
			return false
		}
	}
	return true
}
