package observe

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// health remembers how relisting went.
type health struct {
	mu        sync.Mutex
	underway  time.Time // since when a relist waits for its answer; zero if none does
	succeeded time.Time // when the last relist ended well
	failing   time.Time // since when all have failed; zero if the last did not
	err       error
}

func (h *health) begin(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.underway = now
}

// end reports whether relisting has begun to fail, or to succeed.
func (h *health) end(now time.Time, err error) (turned bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	began := h.underway
	turned = (err == nil) != (h.err == nil) || h.succeeded.IsZero()
	h.underway, h.err = time.Time{}, err
	if err == nil {
		h.succeeded, h.failing = now, time.Time{}
	} else if h.failing.IsZero() {
		h.failing = began
	}
	return turned
}

// LastRelist is when the runtime was last listed in full; zero if it never was.
func (o *Observer) LastRelist() time.Time {
	o.health.mu.Lock()
	defer o.health.mu.Unlock()
	return o.health.succeeded
}

var errNeverListed = errors.New("pleg has yet to be successful")

// Healthy is nil while the runtime answers. It looks at the lists of the whole node only:
// a pod whose own state cannot be read does not make the node unready.
func (o *Observer) Healthy() error {
	now := o.clock.Now()
	h := &o.health
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.failing.IsZero() && now.Sub(h.failing) >= o.cfg.DownAfter:
		return fmt.Errorf("container runtime is down: %w", h.err)
	case !h.underway.IsZero() && now.Sub(h.underway) >= hungAfter:
		return fmt.Errorf("container runtime has not answered for %v", now.Sub(h.underway).Round(time.Second))
	case h.succeeded.IsZero():
		return errNeverListed
	case now.Sub(h.succeeded) >= o.cfg.StaleAfter:
		return fmt.Errorf("pleg was last seen active %v ago; threshold is %v", now.Sub(h.succeeded), o.cfg.StaleAfter)
	}
	return nil
}

// hungAfter is how long a list of everything may take. It takes milliseconds.
const hungAfter = 30 * time.Second
