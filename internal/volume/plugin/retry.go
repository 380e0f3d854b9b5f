package plugin

import (
	"errors"
	"time"
)

// waitError is a failure whose end is not reported by an event.
type waitError struct {
	error
	longest time.Duration
}

func (e waitError) Unwrap() error { return e.error }

// RetryWithin marks an error as a wait for something that has to be polled, such as an object that
// nodes may not watch. It limits the back-off between retries to longest.
func RetryWithin(err error, longest time.Duration) error {
	if err == nil {
		return nil
	}
	return waitError{err, longest}
}

// MaxRetryDelay is the limit that RetryWithin set; ok is false if err has none.
func MaxRetryDelay(err error) (longest time.Duration, ok bool) {
	var w waitError
	if errors.As(err, &w) {
		return w.longest, true
	}
	return 0, false
}
