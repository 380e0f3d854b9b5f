package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
)

const (
	// maxCachedReviews bounds the memory that unauthenticated clients can fill.
	maxCachedReviews = 4096
	// reviewTimeout limits one review, retries included.
	reviewTimeout = 10 * time.Second
)

// reviewCache caches results of the API server until they expire. Concurrent requests for the
// same key share one fetch. Errors are not cached.
type reviewCache[T any] struct {
	clock  clock.PassiveClock
	meters CacheMeters
	flight singleflight.Group

	mu      sync.Mutex
	entries map[[sha256.Size]byte]cacheEntry[T]
}

type cacheEntry[T any] struct {
	value   T
	expires time.Time
}

func newReviewCache[T any](clock clock.PassiveClock, meters CacheMeters) *reviewCache[T] {
	return &reviewCache[T]{clock: clock, meters: meters, entries: map[[sha256.Size]byte]cacheEntry[T]{}}
}

// get returns the cached result, or that of fetch, which also returns its TTL. A fetch is not
// canceled with the request that started it, because other requests may wait for it. It ends
// after reviewTimeout.
func (c *reviewCache[T]) get(ctx context.Context, question string, fetch func(context.Context) (T, time.Duration, error)) (T, error) {
	key := sha256.Sum256([]byte(question))
	start, status := c.clock.Now(), "miss"
	defer func() { c.meters.Lookup.Took(status, c.clock.Since(start)) }()
	if value, ok := c.lookup(key); ok {
		status = "hit"
		return value, nil
	}
	defer c.meters.activeFetch("blocked")()
	got, err, _ := c.flight.Do(string(key[:]), func() (any, error) {
		defer c.meters.activeFetch("in_flight")()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		value, ttl, err := fetch(ctx)
		if err == nil {
			c.store(key, value, ttl)
			c.meters.Fetched.Inc("ok")
		} else {
			c.meters.Fetched.Inc("error")
		}
		return value, err
	})
	value, _ := got.(T)
	return value, err
}

func (c *reviewCache[T]) lookup(key [sha256.Size]byte) (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[key]
	if !ok || !c.clock.Now().Before(entry.expires) {
		return value, false
	}
	return entry.value, true
}

func (c *reviewCache[T]) store(key [sha256.Size]byte, value T, ttl time.Duration) {
	if ttl <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if len(c.entries) >= maxCachedReviews {
		c.evict(now)
	}
	c.entries[key] = cacheEntry[T]{value, now.Add(ttl)}
}

// evict removes expired entries. If that is not enough, it removes arbitrary ones.
func (c *reviewCache[T]) evict(now time.Time) {
	for key, entry := range c.entries {
		if !now.Before(entry.expires) {
			delete(c.entries, key)
		}
	}
	for key := range c.entries {
		if len(c.entries) < maxCachedReviews {
			return
		}
		delete(c.entries, key)
	}
}

// retrier retries requests to the API server that failed with a transient error.
type retrier struct{ clock clock.Clock }

var retryDelays = []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second}

// do calls request until it succeeds or the error is final. duration observes each attempt.
func (r retrier) do(ctx context.Context, duration meter.TimingOf, request func() error) error {
	attempt := func() error {
		start := r.clock.Now()
		err := request()
		observeReview(duration, r.clock.Since(start), err)
		return err
	}
	for _, delay := range retryDelays {
		err := attempt()
		if err == nil || !isTransient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-r.clock.After(delay):
		}
	}
	return attempt()
}

// isTransient reports whether the request may succeed when it is sent again.
func isTransient(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	return apierrors.IsInternalError(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err)
}
