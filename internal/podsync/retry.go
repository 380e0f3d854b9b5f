package podsync

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/image"
	"swiftlet/internal/runtime"
)

// A container that could not be started is tried again soon at first, because most
// failures pass at once.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// retries remembers when containers that could not be started may be tried again. What
// wakes the pod meanwhile does not try them sooner, nor do they hold up anything else.
type retries struct {
	mu      sync.Mutex
	entries map[crashKey]*retry
}

type retry struct {
	failures int
	at       time.Time
}

func newRetries() *retries { return &retries{entries: map[crashKey]*retry{}} }

// failed notes a failure and returns how long to wait. An image that is held back says for
// how long; to ask for it sooner is in vain.
func (r *retries) failed(key crashKey, err error, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[key]
	if e == nil {
		e = &retry{}
		r.entries[key] = e
	}
	wait := lastRetry
	if e.failures < 6 {
		wait = min(firstRetry<<e.failures, lastRetry)
	}
	e.failures++
	if held := (*image.Error)(nil); errors.As(err, &held) && held.Reason == image.ReasonBackOff {
		wait, e.failures = held.RetryAfter, 0
	}
	e.at = now.Add(wait)
	return wait
}

// remaining is how long the container must still wait.
func (r *retries) remaining(key crashKey, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[key]; e != nil {
		return max(0, e.at.Sub(now))
	}
	return 0
}

func (r *retries) succeeded(key crashKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, key)
}

// Hasten lets the containers of a pod be tried again at once whose configuration could not
// be made out, or whose image could not be pulled, because something that they refer to has
// changed. It reports whether there are any, so that the pod is worth waking.
func (s *Steps) Hasten(uid types.UID) bool {
	found := false
	for container, why := range s.waiting.of(uid) {
		switch why.Reason {
		case runtime.ReasonContainerConfig, image.ReasonPull, image.ReasonBackOff, image.ReasonRegistryUnavailable, image.ReasonSignature:
			s.retries.hasten(uid, container)
			found = true
		}
	}
	return found
}

func (r *retries) hasten(uid types.UID, container string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, e := range r.entries {
		if key.pod == uid && key.container == container {
			e.at = time.Time{}
		}
	}
}

// forget drops all that is known of a pod's containers.
func (r *retries) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.entries {
		if key.pod == uid {
			delete(r.entries, key)
		}
	}
}
