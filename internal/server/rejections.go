package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
)

// Reasons for which the server rejects work for clients that it has not authorized, besides those of connlimit.
const (
	rejectSourceReviews = "source_reviews" // too many unknown tokens of a source
	rejectReviews       = "reviews"        // too many unknown tokens of all sources
	rejectOrigin        = "foreign_origin" // a page of another origin in a browser
	denyCredential      = "credential"     // logged as denied, not counted
	denyAccess          = "access"         // logged as denied, not counted
	failAccess          = "access_review"  // logged as failed, not counted
	failAccept          = "accept"         // logged, not counted
	logPeriod           = 10 * time.Second // of one reason
	logsPerPeriod       = 10               // of one reason
)

// rejections counts rejected work by reason. It logs the first few of each period and reason: strangers
// cause them at any rate.
type rejections struct {
	log     *slog.Logger
	clock   clock.PassiveClock
	counted meter.CountOf

	mu      sync.Mutex
	reasons map[string]*logged // of a fixed set of reasons
}

// logged is what was logged of one reason in the current period.
type logged struct {
	since      time.Time
	lines      int
	suppressed int
}

func newRejections(log *slog.Logger, clock clock.PassiveClock, counted meter.CountOf) *rejections {
	return &rejections{log: log, clock: clock, counted: counted, reasons: map[string]*logged{}}
}

// add counts rejected work of a source.
func (r *rejections) add(reason string, from source) {
	r.counted.Inc(reason)
	r.info(reason, "server: rejected client that is not authorized", "reason", reason, "client", from.Addr().String())
}

func (r *rejections) info(reason, message string, args ...any) {
	r.record(slog.LevelInfo, reason, message, args...)
}

// record logs unless enough was logged of the reason.
func (r *rejections) record(level slog.Level, reason, message string, args ...any) {
	suppressed, ok := r.allowLog(reason)
	if !ok {
		return
	}
	if suppressed > 0 {
		args = append(args, "suppressed", suppressed)
	}
	r.log.Log(context.Background(), level, message, args...)
}

// allowLog reports whether to log, and how many lines the period before suppressed.
func (r *rejections) allowLog(reason string) (suppressed int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	l := r.reasons[reason]
	if l == nil {
		l = &logged{since: now}
		r.reasons[reason] = l
	}
	if elapsed := now.Sub(l.since); elapsed >= logPeriod || elapsed < 0 {
		suppressed = l.suppressed
		*l = logged{since: now}
	}
	if l.lines >= logsPerPeriod {
		l.suppressed++
		return 0, false
	}
	l.lines++
	return suppressed, true
}
