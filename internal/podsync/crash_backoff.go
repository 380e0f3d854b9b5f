package podsync

import (
	"time"

	"swiftlet/internal/backoff"
)

// forgiveAfter is how long after a start all that came before it is forgiven, whatever the
// curve.
const forgiveAfter = 10 * time.Minute

// crashBackoff holds how long each crashing container of a pod is held back.
type crashBackoff struct {
	curve   backoff.Backoff
	entries map[containerKey]*crashEntry
}

// containerKey names a container of a pod. A changed container has another hash, and so
// starts with a clean slate.
type containerKey struct{ name, hash string }

type crashEntry struct {
	curve backoff.Backoff
	delay time.Duration // before the next start
	start int           // the start that was let through last, by its restart count
	last  time.Time     // when that was
}

func newCrashBackoff(curve backoff.Backoff) crashBackoff {
	return crashBackoff{curve: curve, entries: map[containerKey]*crashEntry{}}
}

// remaining returns how long the container must still wait for a start, having exited at the
// given time. When the wait is over it counts that start; a second call for the same start,
// because it failed, returns the same. The same exit may stand before two starts: when a
// running instance is to be killed and replaced, only its predecessor's exit is known.
func (b *crashBackoff) remaining(key containerKey, start int, exited, now time.Time) (wait, delay time.Duration) {
	e := b.entries[key]
	if e == nil || now.Sub(e.last) >= forgiveAfter {
		// The first crash: at once, and from now on with a delay.
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
