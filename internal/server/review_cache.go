package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
)

const (
	// maxCachedReviews bounds the positive and the negative results of a cache, each for itself.
	maxCachedReviews = 4096
	// reviewTimeout limits one review, retries included.
	reviewTimeout = 10 * time.Second
	// rememberFor is how long a positive result is remembered after it expired.
	rememberFor = time.Hour
)

// reviewCache caches results of the API server until they expire. Concurrent requests for the
// same key share one fetch. Errors are not cached. Negative results never displace positive ones.
type reviewCache[T any] struct {
	clock  clock.PassiveClock
	meters CacheMeters
	flight singleflight.Group
	secret []byte // makes hashes of tokens useless outside this process

	positive, negative *cache.LRUExpireCache
}

// review is a result of the API server.
type review[T any] struct {
	value    T
	positive bool
	ttl      time.Duration
}

type cacheEntry[T any] struct {
	value   T
	expires time.Time
}

func newReviewCache[T any](clock clock.PassiveClock, meters CacheMeters) *reviewCache[T] {
	return &reviewCache[T]{clock: clock, meters: meters, secret: []byte(rand.Text()),
		positive: cache.NewLRUExpireCacheWithClock(maxCachedReviews, clock),
		negative: cache.NewLRUExpireCacheWithClock(maxCachedReviews, clock),
	}
}

// admission decides whether a request may wait for a review. wasPositive: the last result that is
// remembered was positive. leave is called when the request has its result.
type admission func(wasPositive bool) (leave func(), err error)

// get returns the cached result, or that of fetch. A fetch is not canceled with the request that
// started it, because other requests may wait for it. It ends after reviewTimeout.
func (c *reviewCache[T]) get(ctx context.Context, question string, admit admission, fetch func(context.Context) (review[T], error)) (none T, err error) {
	key := c.hash(question)
	start, status := c.clock.Now(), "miss"
	defer func() { c.meters.Lookup.Took(status, c.clock.Since(start)) }()
	value, ok, wasPositive := c.lookup(key)
	if ok {
		status = "hit"
		return value, nil
	}
	leave, err := admit(wasPositive)
	if err != nil {
		return none, err
	}
	defer leave()
	defer c.meters.activeFetch("blocked")()
	got, err, _ := c.flight.Do(string(key[:]), func() (any, error) {
		defer c.meters.activeFetch("in_flight")()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		result, err := fetch(ctx)
		if err != nil {
			c.meters.Fetched.Inc("error")
			return none, err
		}
		c.store(key, result)
		c.meters.Fetched.Inc("ok")
		return result.value, nil
	})
	value, _ = got.(T)
	return value, err
}

// hash returns a keyed hash, so that the memory of the process has no tokens that can be looked up.
func (c *reviewCache[T]) hash(question string) (key [sha256.Size]byte) {
	h := hmac.New(sha256.New, c.secret)
	h.Write([]byte(question))
	h.Sum(key[:0])
	return key
}

func (c *reviewCache[T]) lookup(key [sha256.Size]byte) (value T, ok, wasPositive bool) {
	if found, remembered := c.positive.Get(key); remembered {
		entry := found.(cacheEntry[T])
		return entry.value, c.clock.Now().Before(entry.expires), true
	}
	if found, remembered := c.negative.Get(key); remembered {
		return found.(cacheEntry[T]).value, true, false
	}
	return value, false, false
}

func (c *reviewCache[T]) store(key [sha256.Size]byte, r review[T]) {
	entry := cacheEntry[T]{r.value, c.clock.Now().Add(r.ttl)}
	if r.positive {
		c.positive.Add(key, entry, r.ttl+rememberFor)
		return
	}
	c.positive.Remove(key)
	if r.ttl > 0 {
		c.negative.Add(key, entry, r.ttl)
	}
}
