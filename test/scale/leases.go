package scale

import (
	"slices"
	"time"
)

// renewInterval is how often a kubelet renews its lease: a quarter of the default duration of 40 s.
const renewInterval = 10 * time.Second

// period is a time in which a storm had stopped the API server or the agents, so that no lease could be
// renewed. The storm has rows of its own for how long it took until all were.
type period struct{ from, to time.Time }

// lateness returns how late each renewal of a lease was: the time since the one before, less the interval.
// At the end of the run, the next renewal of each node counts as if it came then. Renewals across a time in
// which something was stopped are left out.
func lateness(all requests, end time.Time, stopped []period) []time.Duration {
	before := map[string]time.Time{}
	var late []time.Duration
	add := func(from, to time.Time) {
		for _, s := range stopped {
			if from.Before(s.to) && to.After(s.from) {
				return
			}
		}
		late = append(late, max(0, to.Sub(from)-renewInterval))
	}
	for _, r := range all {
		if !renews(r) {
			continue
		}
		if last, ok := before[r.node]; ok {
			add(last, r.at)
		}
		before[r.node] = r.at
	}
	for _, last := range before {
		if end.Sub(last) > renewInterval {
			add(last, end)
		}
	}
	slices.Sort(late)
	return late
}

// renews reports whether a request has renewed a lease.
func renews(r request) bool { return r.what == "update leases" && r.code < 300 }

// renewedSince returns the nodes that have renewed their lease since a time, each with the first renewal.
func renewedSince(all requests, from time.Time) map[string]time.Time {
	first := map[string]time.Time{}
	for _, r := range all {
		if _, known := first[r.node]; !known && renews(r) && r.at.After(from) {
			first[r.node] = r.at
		}
	}
	return first
}

// percentile returns the value below which p percent of sorted values are; zero if there are none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(float64(len(sorted)-1) * p / 100)
	return sorted[i]
}
