package pluginreg

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"swiftlet/internal/backoff"
)

// A plugin that cannot be registered is asked again after firstRetry, then after twice as
// long each time.
const (
	firstRetry   = 500 * time.Millisecond
	longestRetry = 2*time.Minute + 2*time.Second
)

// keeper keeps one socket registered for as long as it is there. Each works on its own, so
// that one that hangs holds up no other.
type keeper struct {
	registry *Registry
	path     string
	id       identity
	dismiss  context.CancelFunc
	done     chan struct{}
	// registered is for those who count.
	registered atomic.Bool
}

// keep registers the plugin, waits for its socket to go and deregisters it. gone ends with
// the socket, ctx with the agent.
func (k *keeper) keep(ctx, gone context.Context) {
	log := k.registry.deps.Log.With("socket", k.path)
	retry := backoff.Backoff{First: firstRetry, Longest: longestRetry}
	for {
		departure := k.registry.departure()
		p, h, err := k.register(ctx, gone)
		if err == nil {
			k.registered.Store(true)
			log.Info("plugin registered", "type", p.Type, "plugin", p.Name, "endpoint", p.Endpoint)
			<-gone.Done()
			if ctx.Err() == nil {
				h.Deregister(p)
				k.registry.departed()
				log.Info("plugin deregistered", "type", p.Type, "plugin", p.Name)
			}
			return
		}
		if h != nil { // its name is free again
			k.registry.departed()
			departure = k.registry.departure()
		}
		if gone.Err() != nil {
			return
		}
		wait := retry.Next()
		log.Warn("plugin not registered", "err", err, "retry", wait)
		if !k.rest(gone, departure, wait) {
			return
		}
	}
}

// rest waits until the plugin is worth another try; false means that it is gone.
func (k *keeper) rest(gone context.Context, departure <-chan struct{}, wait time.Duration) bool {
	timer := k.registry.deps.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-departure:
	case <-gone.Done():
	}
	return gone.Err() == nil
}

// errNoHandler is what a plugin of a type nobody works with is told.
var errNoHandler = errors.New("no handler registered for plugin type")
