package image

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/backoff"
)

const (
	firstDelay = 10 * time.Second
	lastDelay  = 300 * time.Second
	// forgiven is how long after a failure it no longer counts.
	forgiven = 2 * lastDelay
)

// pullBackoff remembers failed pulls by pod and image. A failure counts for those who would try
// the same again: with other credentials, the next pull may be a different matter.
type pullBackoff struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	failures map[string]failure
}

type failure struct {
	at      time.Time
	retry   backoff.Backoff
	delay   time.Duration // until the next pull
	message string        // reason and message of the pull that failed
	opener  string        // stands for the credentials that it was tried with
}

// left is how long the key must still wait, and what failed.
func (b *pullBackoff) left(key, opener string) (time.Duration, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.failures[key]
	if !ok || f.opener != opener {
		return 0, ""
	}
	return max(0, f.delay-b.clock.Since(f.at)), f.message
}

// fail notes a failure and returns how long to wait.
func (b *pullBackoff) fail(key, opener, message string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	for k, f := range b.failures {
		if now.Sub(f.at) > forgiven {
			delete(b.failures, k)
		}
	}
	f, ok := b.failures[key]
	if !ok || f.opener != opener {
		f.retry = backoff.Backoff{First: firstDelay, Longest: lastDelay}
	}
	f.at, f.delay, f.message, f.opener = now, f.retry.Next(), message, opener
	b.failures[key] = f
	return f.delay
}

func (b *pullBackoff) succeed(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failures, key)
}
