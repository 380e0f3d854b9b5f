package podsync

import (
	"time"

	"swiftlet/internal/backoff"
)

// resetAfter is how long after a start the back-off begins again, whatever the curve.
const resetAfter = 10 * time.Minute

// crashBackoff has the back-off of each crashing container of a pod.
type crashBackoff struct {
	curve   backoff.Backoff
	entries map[containerKey]*crashEntry
}

// containerKey identifies a container of a pod. A changed container has another hash, so its
// back-off begins again.
type containerKey struct{ name, hash string }

type crashEntry struct {
	curve backoff.Backoff
	delay time.Duration // before the next start
	start int           // the last start that was allowed, by its restart count
	last  time.Time     // when it was allowed
}

func newCrashBackoff(curve backoff.Backoff) crashBackoff {
	return crashBackoff{curve: curve, entries: map[containerKey]*crashEntry{}}
}

// remaining returns how long a container that exited at the given time must wait for its next
// start. When the wait is over it counts that start; a further call for the same start, because it
// failed, returns zero again. Two starts may follow the same exit: when a running instance is to
// be killed and replaced, only its predecessor has exited.
func (b *crashBackoff) remaining(key containerKey, start int, exited, now time.Time) (wait, delay time.Duration) {
	e := b.entries[key]
	if e == nil || now.Sub(e.last) >= resetAfter {
		// The first crash: the restart is not delayed, the next one is.
		e = &crashEntry{curve: b.curve, start: start, last: now}
		e.delay = e.curve.Next()
		b.entries[key] = e
		return 0, 0
	}
	if e.start == start {
		return 0, 0
	}
	if due := exited.Add(e.delay); now.Before(due) {
		return due.Sub(now), e.delay
	}
	e.delay, e.start, e.last = e.curve.Next(), start, now
	return 0, 0
}
