package podsync

import (
	"errors"
	"time"

	"swiftlet/internal/backoff"
	"swiftlet/internal/image"
	"swiftlet/internal/runtime"
)

// A container that could not be started is tried again soon at first, because most
// failures pass at once.
var startRetry = backoff.Backoff{First: 200 * time.Millisecond, Longest: 10 * time.Second}

// startBackoff holds when the containers of a pod that could not be started may be tried
// again. What wakes the pod meanwhile does not try them sooner, nor do they hold up anything
// else.
type startBackoff map[containerKey]*startEntry

type startEntry struct {
	retry backoff.Backoff
	at    time.Time
}

// failed notes a failure and returns how long to wait. An image that is held back says for
// how long; to pull it sooner is in vain.
func (b startBackoff) failed(key containerKey, err error, now time.Time) time.Duration {
	e := b[key]
	if e == nil {
		e = &startEntry{retry: startRetry}
		b[key] = e
	}
	wait := e.retry.Next()
	if held := (*image.Error)(nil); errors.As(err, &held) && held.Reason == image.ReasonBackOff {
		wait = held.RetryAfter
		e.retry.Reset()
	}
	e.at = now.Add(wait)
	return wait
}

// remaining is how long the container must still wait.
func (b startBackoff) remaining(key containerKey, now time.Time) time.Duration {
	if e := b[key]; e != nil {
		return max(0, e.at.Sub(now))
	}
	return 0
}

func (b startBackoff) succeeded(key containerKey) { delete(b, key) }

// retryNow ends the wait of a container.
func (b startBackoff) retryNow(container string) {
	for key, e := range b {
		if key.name == container {
			e.at = time.Time{}
		}
	}
}

// awaitsObject reports whether a change of a ConfigMap or Secret may let a container start
// that waits for this reason: its configuration was incomplete, or its image could not be
// pulled.
func awaitsObject(reason string) bool {
	switch reason {
	case runtime.ReasonContainerConfig, image.ReasonPull, image.ReasonBackOff, image.ReasonRegistryUnavailable, image.ReasonSignature:
		return true
	}
	return false
}

// awaitsObjects reports whether a container waits for a ConfigMap or Secret.
func (m *memory) awaitsObjects() bool {
	for _, why := range m.waitingReasons {
		if awaitsObject(why.Reason) {
			return true
		}
	}
	return false
}

// objectsChanged ends the wait of the containers that wait for a ConfigMap or Secret.
func (m *memory) objectsChanged() {
	for container, why := range m.waitingReasons {
		if awaitsObject(why.Reason) {
			m.startBackoff.retryNow(container)
		}
	}
}
