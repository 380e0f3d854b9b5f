package podsync

import (
	"errors"
	"time"

	"swiftlet/internal/backoff"
	"swiftlet/internal/image"
	"swiftlet/internal/runtime"
)

// startRetry is the back-off of a container that failed to start. It begins with a short delay,
// because most failures are transient.
var startRetry = backoff.Backoff{First: 200 * time.Millisecond, Longest: 10 * time.Second}

// startBackoff has the time of the next attempt for each container of a pod that failed to start.
// An earlier sync of the pod does not retry them sooner, and they do not delay other containers.
type startBackoff map[containerKey]*startEntry

type startEntry struct {
	retry backoff.Backoff
	at    time.Time
}

// failed records a failure and returns how long to wait. An image in back-off has its own delay;
// a retry before it is over would not pull the image.
func (b startBackoff) failed(key containerKey, err error, now time.Time) time.Duration {
	e := b[key]
	if e == nil {
		e = &startEntry{retry: startRetry}
		b[key] = e
	}
	wait := e.retry.Next()
	if pull := (*image.Error)(nil); errors.As(err, &pull) && pull.Reason == image.ReasonBackOff {
		wait = pull.RetryAfter
		e.retry.Reset()
	}
	e.at = now.Add(wait)
	return wait
}

// remaining returns how long the container must still wait.
func (b startBackoff) remaining(key containerKey, now time.Time) time.Duration {
	if e := b[key]; e != nil {
		return max(0, e.at.Sub(now))
	}
	return 0
}

func (b startBackoff) succeeded(key containerKey) { delete(b, key) }

// retryNow ends the wait of a container, not its back-off.
func (b startBackoff) retryNow(container string) {
	for key, e := range b {
		if key.name == container {
			e.at = time.Time{}
		}
	}
}

// awaitsObject reports whether a container that waits for this reason may start after a change of
// a ConfigMap or Secret: its configuration was incomplete, or its image could not be pulled.
func awaitsObject(reason string) bool {
	switch reason {
	case runtime.ReasonContainerConfig, image.ReasonPull, image.ReasonBackOff, image.ReasonRegistryUnavailable, image.ReasonSignature:
		return true
	}
	return false
}

// awaitsObjects reports whether a container waits for a ConfigMap or Secret.
func (m *memory) awaitsObjects() bool {
	for _, waiting := range m.waitingReasons {
		if awaitsObject(waiting.Reason) {
			return true
		}
	}
	return false
}

// objectsChanged ends the wait of the containers that wait for a ConfigMap or Secret.
func (m *memory) objectsChanged() {
	for container, waiting := range m.waitingReasons {
		if awaitsObject(waiting.Reason) {
			m.startBackoff.retryNow(container)
		}
	}
}
