package observe

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/backoff"
	"swiftlet/internal/cri"
)

const (
	firstRetry = 50 * time.Millisecond
	maxRetry   = time.Second
	// noStreamRetry is the delay between subscriptions to a runtime without a stream, which
	// may be upgraded meanwhile.
	noStreamRetry = time.Minute
	// maxPromptEnds is how many streams may end at once before the runtime counts as one without: CRI-O ends them
	// without an error if its events are not enabled. A runtime that stops ends one.
	maxPromptEnds = 3
)

// streamEvents keeps a subscription to the runtime's events until ctx is done.
func (o *Observer) streamEvents(ctx context.Context) {
	s := subscriptions{retry: backoff.Backoff{First: firstRetry, Longest: maxRetry}}
	for {
		began := o.deps.Clock.Now()
		o.setStreaming(true)
		err := o.deps.Runtime.Events(ctx, func(event *runtimeapi.ContainerEventResponse) {
			if s.delivered() {
				o.deps.Log.Info("pleg: runtime delivers events again")
			}
			o.handleContained(ctx, event)
		})
		o.setStreaming(false)
		if ctx.Err() != nil {
			return
		}
		o.deps.Meters.StreamErrors.Inc()
		wait := s.ended(err, o.deps.Clock.Since(began))
		if s.worthLogging(o.deps.Clock.Now(), err) {
			o.deps.Log.Warn("pleg: no event stream from runtime, polling", "period", o.cfg.PollPeriod, "retryAfter", wait, "err", err)
		}
		select {
		case <-o.deps.Clock.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// subscriptions is what is known of the subscriptions so far. It belongs to one goroutine.
type subscriptions struct {
	retry      backoff.Backoff
	promptEnds int       // in a row
	failing    bool      // no event has been delivered since the last failure
	logged     time.Time // when the last failure was
	loggedText string
}

// delivered notes an event. It reports whether it is the first one after a failure.
func (s *subscriptions) delivered() (recovered bool) {
	recovered = s.failing && !s.logged.IsZero()
	s.failing, s.promptEnds, s.logged = false, 0, time.Time{}
	return recovered
}

// ended returns the delay before the next subscription.
func (s *subscriptions) ended(err error, lasted time.Duration) time.Duration {
	s.failing = true
	if lasted > maxRetry { // the subscription worked
		s.retry.Reset()
		s.promptEnds = 0
	} else if cri.IsStreamEnded(err) {
		s.promptEnds++
	}
	wait := s.retry.Next()
	if cri.IsUnimplemented(err) || s.promptEnds >= maxPromptEnds {
		return noStreamRetry
	}
	return wait
}

// worthLogging reports whether the failure differs from the last one that was logged, or an hour has passed.
func (s *subscriptions) worthLogging(now time.Time, err error) bool {
	if text := err.Error(); text != s.loggedText || s.logged.IsZero() || now.Sub(s.logged) >= time.Hour {
		s.logged, s.loggedText = now, text
		return true
	}
	return false
}
