package certificate

import (
	"errors"
	"time"
)

// failureReports limits which failures are reported as events: those of requests that the API
// server received, and those that last. An API server that is unreachable for a short time is
// visible elsewhere.
type failureReports struct {
	failingSince time.Time // zero after a success
	lastReport   time.Time
}

// failed records a failure and returns whether to report it.
func (f *failureReports) failed(now time.Time, err error) (report bool) {
	if f.failingSince.IsZero() {
		f.failingSince = now
	}
	csrCreated := errors.As(err, new(*csrCreatedError))
	if !csrCreated && now.Sub(f.failingSince) < reportInterval {
		return false
	}
	if !f.lastReport.IsZero() && now.Sub(f.lastReport) < reportInterval {
		return false
	}
	f.lastReport = now
	return true
}

// succeeded records a success. It keeps lastReport, so that alternating successes and failures
// are not reported each time.
func (f *failureReports) succeeded() { f.failingSince = time.Time{} }
