package eviction

import (
	"maps"
	"time"
)

const (
	// period is the longest time between two looks.
	period = 10 * time.Second
	// pause is the shortest: an alarm may ring without end while memory is at its mark.
	pause = 50 * time.Millisecond
	// deafest is how long rings are left alone at the most: an alarm may ring without end for a
	// container that is at its own limit, which is nobody else's concern.
	deafest = 500 * time.Millisecond
)

// deafFor is how long to be deaf to the alarm after a look, which was so long before: longer
// each time that it rang for nothing.
func deafFor(before time.Duration, forNothing bool) time.Duration {
	if !forNothing {
		return pause
	}
	return min(2*before, deafest)
}

// near reports whether memory could fall to a threshold while nobody hears the alarm.
func near(state verdict, thresholds []Threshold, levels Levels, now time.Time) bool {
	memory := maps.Clone(levels)
	maps.DeleteFunc(memory, func(s Signal, _ Level) bool { return !ofMemory(s) })
	return nextLook(state, thresholds, memory, now) <= deafest
}

// nextLook is how long nothing can happen that would have to be seen: until the fastest
// pod could have brought a level down to its threshold, until a grace is over, and no
// longer than a period.
func nextLook(state verdict, thresholds []Threshold, levels Levels, now time.Time) time.Duration {
	wait := period
	for i, t := range thresholds {
		level, known := levels[t.Signal]
		if !known {
			continue
		}
		if since, met := state.since[i]; met {
			if rest := t.Grace - now.Sub(since); rest > 0 {
				wait = min(wait, max(rest, traits[t.Signal].often))
			}
			continue
		}
		trait, way := traits[t.Signal], level.Available-t.floor(level.Capacity, false)
		seconds := float64(way) / float64(trait.fastest)
		if seconds < period.Seconds() {
			wait = min(wait, max(time.Duration(seconds*float64(time.Second)), trait.often))
		}
	}
	return wait
}
