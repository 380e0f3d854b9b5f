package image

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/contain"
)

// inFlightPulls are the pulls in progress, at most one for each key.
type inFlightPulls struct {
	mu      sync.Mutex
	byKey   map[string]*inFlightPull
	waiting map[string]map[*waiter]bool // by key
}

// inFlightPull is one pull. Its results may be read once done is closed.
type inFlightPull struct {
	credentials string // fingerprint
	began       time.Time
	done        chan struct{}
	result      result
	err         error
	// canceled: the caller that pulls was canceled, which says nothing about the image.
	canceled bool
}

// waiter waits until it may start a pull; cancel ends that.
type waiter struct{ cancel context.CancelCauseFunc }

// startedError is why a wait ended: another caller has started the pull.
type startedError struct{ pull *inFlightPull }

func (startedError) Error() string { return "another caller pulls the image" }

// wanted is what a caller needs of the pull of another.
type wanted struct {
	credentials string // fingerprint
	policy      v1.PullPolicy
	requested   time.Time
}

func newInFlightPulls() *inFlightPulls {
	return &inFlightPulls{byKey: map[string]*inFlightPull{}, waiting: map[string]map[*waiter]bool{}}
}

// untilStarted returns a context that ends when any caller starts the pull, with a startedError as its cause.
// release must be called.
func (f *inFlightPulls) untilStarted(ctx context.Context, key string) (until context.Context, release func()) {
	until, cancel := context.WithCancelCause(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.byKey[key]; other != nil {
		cancel(startedError{other})
		return until, func() {}
	}
	w := &waiter{cancel}
	if f.waiting[key] == nil {
		f.waiting[key] = map[*waiter]bool{}
	}
	f.waiting[key][w] = true
	return until, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if delete(f.waiting[key], w); len(f.waiting[key]) == 0 {
			delete(f.waiting, key)
		}
		cancel(nil)
	}
}

// startOrGet registers a pull, or returns the one in progress.
func (f *inFlightPulls) startOrGet(key, credentials string, now time.Time) (mine, other *inFlightPull) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.byKey[key]; other != nil {
		return nil, other
	}
	mine = &inFlightPull{credentials: credentials, began: now, done: make(chan struct{})}
	f.byKey[key] = mine
	for w := range f.waiting[key] {
		w.cancel(startedError{mine})
	}
	return mine, nil
}

// run executes a pull that startOrGet has registered.
func (f *inFlightPulls) run(ctx context.Context, key string, mine *inFlightPull, pull func() (result, error)) (result, error) {
	mine.result, mine.err = contain.Value(pull)
	mine.canceled = mine.err != nil && ctx.Err() != nil
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byKey, key)
	close(mine.done)
	return mine.result, mine.err
}

// await waits for the pull of another caller. Its result is usable only if the credentials are equal (a pod must
// not get an image that it could not have pulled) and, for the policy Always, if that pull began after the request.
func (other *inFlightPull) await(ctx context.Context, want wanted) (got result, usable bool, err error) {
	select {
	case <-other.done:
	case <-ctx.Done():
		return result{}, true, ctx.Err()
	}
	fresh := want.policy != v1.PullAlways || !other.began.Before(want.requested)
	usable = !other.canceled && other.credentials == want.credentials && fresh
	return other.result, usable, other.err
}
