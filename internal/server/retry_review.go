package server

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
)

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
