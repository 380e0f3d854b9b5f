package podsync

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// forgiveAfter is how long after a start all that came before it is forgiven, whatever the
// curve.
const forgiveAfter = 10 * time.Minute

// Backoff is the curve by which a crashing container is held back: the first restart is at
// once, the next after First, then twice as long each time up to Longest.
type Backoff struct {
	First, Longest time.Duration
}

// crashBackoff remembers how long each crashing container is held back.
type crashBackoff struct {
	curve Backoff

	mu      sync.Mutex
	entries map[crashKey]*crashEntry
}

type crashKey struct {
	pod       types.UID
	container string
	hash      string // a changed container starts with a clean slate
}

type crashEntry struct {
	delay time.Duration
	start int       // the start that was let through last, by its restart count
	last  time.Time // when that was
}

func newCrashBackoff(curve Backoff) *crashBackoff {
	return &crashBackoff{curve: curve, entries: map[crashKey]*crashEntry{}}
}

// remaining says how long the container must still wait for a start, having exited at the
// given time. When the wait is over it counts that start; asked again about the same one,
// because it failed, it says the same. The same exit may stand before two starts: when a
// running instance is to be killed and replaced, only its predecessor's exit is known.
func (b *crashBackoff) remaining(key crashKey, start int, exited, now time.Time) (wait, delay time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[key]
	if e == nil || now.Sub(e.last) >= forgiveAfter {
		// The first crash: at once, and from now on with a delay.
		b.entries[key] = &crashEntry{delay: min(b.curve.First, b.curve.Longest), start: start, last: now}
		return 0, 0
	}
	if e.start == start {
		return 0, 0
	}
	if due := exited.Add(e.delay); now.Before(due) {
		return due.Sub(now), e.delay
	}
	e.delay, e.start, e.last = min(2*e.delay, b.curve.Longest), start, now
	return 0, 0
}

// forget drops all that is known of a pod's containers.
func (b *crashBackoff) forget(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.entries {
		if key.pod == uid {
			delete(b.entries, key)
		}
	}
}
