package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	timerate "golang.org/x/time/rate"

	"swiftlet/internal/connlimit"
)

// reviewLimits bounds the questions to the API server about tokens. Tokens of strangers and tokens that
// were valid before, or come from a known source, have separate limits: strangers cannot use up those of
// others.
type reviewLimits struct {
	limits   limits
	sources  *sources
	rejected *rejections

	mu              sync.Mutex
	strangers, rest lane
	tokens, access  map[source]int // requests that wait for a review
}

// lane is one share of the reviews.
type lane struct {
	rate    *timerate.Limiter
	waiting int
}

func newReviewLimits(l limits, s *sources, r *rejections) *reviewLimits {
	return &reviewLimits{limits: l, sources: s, rejected: r, tokens: map[source]int{}, access: map[source]int{},
		strangers: lane{rate: l.reviewRate.limiter()}, rest: lane{rate: l.knownReviewRate.limiter()},
	}
}

// overloadedError is the answer to a request that may succeed later.
type overloadedError struct {
	code   int
	reason string
}

func (e *overloadedError) Error() string {
	return fmt.Sprintf("authenticate request: too many requests with unknown credentials (%s)", e.reason)
}

// reviewRetrySeconds is when a rejected client may try again.
const reviewRetrySeconds = "1"

func (e *overloadedError) respond(w http.ResponseWriter) {
	w.Header().Set("Retry-After", reviewRetrySeconds)
	http.Error(w, e.Error(), e.code)
}

// enter admits a request that waits for the review of a token. The caller calls leave after it. wasValid:
// the token was valid before.
func (l *reviewLimits) enter(from source, wasValid bool) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	share := &l.strangers
	if wasValid || l.sources.isKnown(from) {
		share = &l.rest
	}
	switch {
	case !wasValid && l.tokens[from] >= l.limits.reviewsPerSource,
		!wasValid && !l.sources.allowReview(from):
		return nil, l.reject(http.StatusTooManyRequests, rejectSourceReviews, from)
	case share.waiting >= l.limits.reviews, !share.rate.AllowN(l.sources.clock.Now(), 1):
		return nil, l.reject(http.StatusServiceUnavailable, rejectReviews, from)
	}
	share.waiting++
	if wasValid {
		return func() { l.leave(share, nil) }, nil
	}
	l.tokens[from]++
	return func() { l.leave(share, &from) }, nil
}

func (l *reviewLimits) leave(share *lane, from *source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	share.waiting--
	if from != nil {
		leaveSource(l.tokens, *from)
	}
}

// enterAccess admits a request that waits for a review of access. Its user is authenticated and there are
// few verbs and subresources, so that only the number of requests is limited that wait, and only of
// sources that are not known.
func (l *reviewLimits) enterAccess(ctx context.Context) (leave func(), err error) {
	c := connlimit.FromContext(ctx)
	if c == nil || l.sources.isKnown(c.Source()) {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.access[c.Source()] >= l.limits.reviews {
		return nil, l.reject(http.StatusServiceUnavailable, rejectReviews, c.Source())
	}
	l.access[c.Source()]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		leaveSource(l.access, c.Source())
	}, nil
}

func leaveSource(waiting map[source]int, from source) {
	if waiting[from]--; waiting[from] == 0 {
		delete(waiting, from)
	}
}

func (l *reviewLimits) reject(code int, reason string, from source) error {
	l.rejected.add(reason, from)
	return &overloadedError{code, reason}
}
