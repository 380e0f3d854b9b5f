package image

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/backoff"
)

const (
	initialBackoff = 10 * time.Second
	maxBackoff     = 300 * time.Second
	// failureTTL is how long a failure is remembered.
	failureTTL = 2 * maxBackoff
)

// pullBackoff holds the back-off of failed pulls by pod and image. It applies only to pulls
// with the same credentials: other credentials may succeed at once.
type pullBackoff struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	failures map[string]failure
}

type failure struct {
	at          time.Time
	retry       backoff.Backoff
	delay       time.Duration // until the next pull
	message     string        // reason and message of the failed pull
	credentials string        // identifies the credentials of the failed pull
}

// remaining returns how long the key is still in back-off, and the message of the failure.
func (b *pullBackoff) remaining(key, credentials string) (time.Duration, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.failures[key]
	if !ok || f.credentials != credentials {
		return 0, ""
	}
	return max(0, f.delay-b.clock.Since(f.at)), f.message
}

// recordFailure returns the delay until the next pull.
func (b *pullBackoff) recordFailure(key, credentials, message string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	for k, f := range b.failures {
		if now.Sub(f.at) > failureTTL {
			delete(b.failures, k)
		}
	}
	f, ok := b.failures[key]
	if !ok || f.credentials != credentials {
		f.retry = backoff.Backoff{First: initialBackoff, Longest: maxBackoff}
	}
	f.at, f.delay, f.message, f.credentials = now, f.retry.Next(), message, credentials
	b.failures[key] = f
	return f.delay
}

func (b *pullBackoff) reset(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failures, key)
}
