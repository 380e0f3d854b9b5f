package observe

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// health is the outcome of relists.
type health struct {
	mu           sync.Mutex
	inProgress   time.Time // start of the relist in progress; zero if there is none
	lastSuccess  time.Time // end of the last successful relist
	failingSince time.Time // zero if the last relist succeeded
	err          error
}

func (h *health) start(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inProgress = now
}

// finish reports whether the outcome differs from that of the last relist.
func (h *health) finish(now time.Time, err error) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	began := h.inProgress
	changed = (err == nil) != (h.err == nil) || h.lastSuccess.IsZero()
	h.inProgress, h.err = time.Time{}, err
	if err == nil {
		h.lastSuccess, h.failingSince = now, time.Time{}
	} else if h.failingSince.IsZero() {
		h.failingSince = began
	}
	return changed
}

// LastRelist is the time of the last successful relist; zero if there was none.
func (o *Observer) LastRelist() time.Time {
	o.health.mu.Lock()
	defer o.health.mu.Unlock()
	return o.health.lastSuccess
}

var errNeverListed = errors.New("pleg has yet to be successful")

// Healthy returns nil while relists succeed. A single pod that cannot be read does not make the
// node unready.
func (o *Observer) Healthy() error {
	now := o.deps.Clock.Now()
	h := &o.health
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.failingSince.IsZero() && now.Sub(h.failingSince) >= o.cfg.DownAfter:
		return fmt.Errorf("container runtime is down: %w", h.err)
	case !h.inProgress.IsZero() && now.Sub(h.inProgress) >= hungAfter:
		return fmt.Errorf("container runtime has not answered for %v", now.Sub(h.inProgress).Round(time.Second))
	case h.lastSuccess.IsZero():
		return errNeverListed
	case now.Sub(h.lastSuccess) >= o.cfg.StaleAfter:
		return fmt.Errorf("pleg was last seen active %v ago; threshold is %v", now.Sub(h.lastSuccess), o.cfg.StaleAfter)
	}
	return nil
}

// hungAfter is the age at which a relist counts as hung. It usually takes milliseconds.
const hungAfter = 30 * time.Second
