package eviction

import (
	"maps"
	"time"
)

const (
	// period is the longest time between two checks.
	period = 10 * time.Second
	// minWait is the shortest: memory notifications may be continuous while memory usage is at a
	// threshold.
	minWait = 50 * time.Millisecond
	// maxQuiet bounds how long the loop ignores memory notifications. They may be continuous for
	// a container that is at its own limit, which is no reason to evict.
	maxQuiet = 500 * time.Millisecond
)

// nearThreshold reports whether memory could fall to a threshold while the loop ignores
// memory notifications.
func nearThreshold(state evaluation, thresholds []Threshold, levels Levels, now time.Time) bool {
	memory := maps.Clone(levels)
	maps.DeleteFunc(memory, func(s Signal, _ Level) bool { return !ofMemory(s) })
	return nextCheck(state, thresholds, memory, now) <= maxQuiet
}

// nextCheck returns how long the loop may wait: until the fastest pod could have brought a
// level down to its threshold or a grace period is over, and no longer than period.
func nextCheck(state evaluation, thresholds []Threshold, levels Levels, now time.Time) time.Duration {
	wait := period
	for i, t := range thresholds {
		level, known := levels[t.Signal]
		if !known {
			continue
		}
		if since, met := state.metSince[i]; met {
			if remaining := t.GracePeriod - now.Sub(since); remaining > 0 {
				wait = min(wait, max(remaining, signalInfos[t.Signal].minInterval))
			}
			continue
		}
		info, distance := signalInfos[t.Signal], level.Available-t.floor(level.Capacity, false)
		seconds := float64(distance) / float64(info.maxRate)
		if seconds < period.Seconds() {
			wait = min(wait, max(time.Duration(seconds*float64(time.Second)), info.minInterval))
		}
	}
	return wait
}
