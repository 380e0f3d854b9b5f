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
	// maxAnswers bounds the memory that strangers' requests can fill.
	maxAnswers = 4096
	// reviewTime is how long one question to the API server may take, tries included.
	reviewTime = 10 * time.Second
)

// answers remembers what the API server said until it goes stale. Questions that are
// being asked already are not asked again. Errors are not remembered.
type answers[T any] struct {
	clock  clock.PassiveClock
	meters CacheMeters
	flight singleflight.Group

	mu    sync.Mutex
	known map[[sha256.Size]byte]answer[T]
}

type answer[T any] struct {
	value T
	until time.Time
}

func newAnswers[T any](clock clock.PassiveClock, meters CacheMeters) *answers[T] {
	return &answers[T]{clock: clock, meters: meters, known: map[[sha256.Size]byte]answer[T]{}}
}

// get is the remembered answer to the question, or that of ask, which says how long it is
// good for. The asking outlives its first caller's patience, because others wait for it
// too; it ends after reviewTime in any case.
func (a *answers[T]) get(ctx context.Context, question string, ask func(context.Context) (T, time.Duration, error)) (T, error) {
	key := sha256.Sum256([]byte(question))
	asked, how := a.clock.Now(), "miss"
	defer func() { a.meters.Asked.Took(how, a.clock.Since(asked)) }()
	if value, ok := a.remembered(key); ok {
		how = "hit"
		return value, nil
	}
	defer a.meters.waiting("blocked")()
	got, err, _ := a.flight.Do(string(key[:]), func() (any, error) {
		defer a.meters.waiting("in_flight")()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTime)
		defer cancel()
		value, ttl, err := ask(ctx)
		if err == nil {
			a.remember(key, value, ttl)
			a.meters.Fetched.Inc("ok")
		} else {
			a.meters.Fetched.Inc("error")
		}
		return value, err
	})
	value, _ := got.(T)
	return value, err
}

func (a *answers[T]) remembered(key [sha256.Size]byte) (value T, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.known[key]
	if !ok || !a.clock.Now().Before(found.until) {
		return value, false
	}
	return found.value, true
}

func (a *answers[T]) remember(key [sha256.Size]byte, value T, ttl time.Duration) {
	if ttl <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	if len(a.known) >= maxAnswers {
		a.makeRoom(now)
	}
	a.known[key] = answer[T]{value, now.Add(ttl)}
}

// makeRoom drops what is stale, and any answer when none is.
func (a *answers[T]) makeRoom(now time.Time) {
	for key, found := range a.known {
		if !now.Before(found.until) {
			delete(a.known, key)
		}
	}
	for key := range a.known {
		if len(a.known) < maxAnswers {
			return
		}
		delete(a.known, key)
	}
}

// retries asks the API server again when the trouble may be passing.
type retries struct{ clock clock.Clock }

var retryDelays = []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second}

// do asks until there is an answer; took is told of each try.
func (r retries) do(ctx context.Context, took meter.TimingOf, ask func() error) error {
	try := func() error {
		began := r.clock.Now()
		err := ask()
		reviewed(took, began, r.clock.Now(), err)
		return err
	}
	for _, delay := range retryDelays {
		err := try()
		if err == nil || !mayPass(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-r.clock.After(delay):
		}
	}
	return try()
}

// mayPass tells trouble on the way, or in the API server, from its considered answer.
func mayPass(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	return apierrors.IsInternalError(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err)
}
