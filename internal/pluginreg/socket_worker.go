package pluginreg

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"swiftlet/internal/backoff"
)

// Back-off between attempts to register a plugin: it doubles from firstRetry to longestRetry.
const (
	firstRetry   = 500 * time.Millisecond
	longestRetry = 2*time.Minute + 2*time.Second
)

// socketWorker registers the plugin of one socket and deregisters it when the socket is removed.
// Every socket has its own, so that a plugin that hangs delays no other.
type socketWorker struct {
	registry *Registry
	path     string
	id       identity
	cancel   context.CancelFunc
	done     chan struct{}
	// registered is read by Sockets.
	registered atomic.Bool
}

// run registers the plugin, with retries, waits until its socket is removed and deregisters it.
// gone is done when the socket is removed, ctx when the agent ends.
func (w *socketWorker) run(ctx, gone context.Context) {
	log := w.registry.deps.Log.With("socket", w.path)
	retry := backoff.Backoff{First: firstRetry, Longest: longestRetry}
	for {
		nextDeregistration := w.registry.nextDeregistration()
		p, h, err := w.register(ctx, gone)
		if err == nil {
			w.registered.Store(true)
			log.Info("plugin registered", "type", p.Type, "plugin", p.Name, "endpoint", p.Endpoint)
			<-gone.Done()
			if ctx.Err() == nil {
				h.Deregister(p)
				w.registry.notifyDeregistered()
				log.Info("plugin deregistered", "type", p.Type, "plugin", p.Name)
			}
			return
		}
		if h != nil { // deregistered: its name is available again
			w.registry.notifyDeregistered()
			nextDeregistration = w.registry.nextDeregistration()
		}
		if gone.Err() != nil {
			return
		}
		wait := retry.Next()
		log.Warn("failed to register plugin", "err", err, "retryAfter", wait)
		if !w.waitForRetry(gone, nextDeregistration, wait) {
			return
		}
	}
}

// waitForRetry waits for the back-off, or until another plugin is deregistered. It returns false
// if the socket is removed.
func (w *socketWorker) waitForRetry(gone context.Context, nextDeregistration <-chan struct{}, wait time.Duration) bool {
	timer := w.registry.deps.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-nextDeregistration:
	case <-gone.Done():
	}
	return gone.Err() == nil
}

// errNoHandler is reported to a plugin of a type without a handler.
var errNoHandler = errors.New("no handler registered for plugin type")
