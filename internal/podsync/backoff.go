package podsync

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The curve of the reference kubelet: the first restart is at once, then 10 s, doubling.
// A container that ran long enough since is forgiven.
const (
	firstBackoff = 10 * time.Second
	forgiveAfter = 2 // times the longest delay
)

// crashBackoff remembers how long each crashing container is held back.
type crashBackoff struct {
	longest time.Duration

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
	last  time.Time // when the exit was that the delay counts from
	start int       // the start that was let through last, by its restart count
}

func newCrashBackoff(longest time.Duration) *crashBackoff {
	return &crashBackoff{longest: longest, entries: map[crashKey]*crashEntry{}}
}

// remaining says how long the container must still wait for a start, having exited at the
// given time. When the wait is over it counts that start; asked again about the same one,
// because it failed, it says the same. The same exit may stand before two starts: when a
// running instance is to be killed and replaced, only its predecessor's exit is known.
func (b *crashBackoff) remaining(key crashKey, start int, exited, now time.Time) (wait, delay time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, known := b.entries[key]
	if known && exited.Sub(e.last) > forgiveAfter*b.longest {
		known = false
	}
	if !known {
		// The first crash: at once, and from now on with a delay.
		b.entries[key] = &crashEntry{delay: min(firstBackoff, b.longest), last: exited, start: start}
		return 0, 0
	}
	if e.start == start {
		return 0, 0
	}
	if due := exited.Add(e.delay); now.Before(due) {
		return due.Sub(now), e.delay
	}
	e.delay, e.last, e.start = min(2*e.delay, b.longest), exited, start
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
