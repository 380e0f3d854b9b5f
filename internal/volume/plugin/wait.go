package plugin

import (
	"errors"
	"time"
)

// waitError is a failure that passes without anybody telling us.
type waitError struct {
	error
	longest time.Duration
}

func (e waitError) Unwrap() error { return e.error }

// Unwatched marks an error as a wait for something that can only be asked about again and
// again, such as an object that nodes may not watch. The pauses between tries then grow to
// longest and no further.
func Unwatched(err error, longest time.Duration) error {
	if err == nil {
		return nil
	}
	return waitError{err, longest}
}

// LongestWait is the longest pause before another try that err allows, and whether it says.
func LongestWait(err error) (time.Duration, bool) {
	var w waitError
	if errors.As(err, &w) {
		return w.longest, true
	}
	return 0, false
}
