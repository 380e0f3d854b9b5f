package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"k8s.io/utils/clock"
)

// shortestWatchdog is the shortest timeout that is accepted: with less, a moment of load would
// have the agent restarted.
const shortestWatchdog = time.Second

// NotifyReady tells the service manager, if there is one, that the agent has started.
func NotifyReady() error {
	_, err := daemon.SdNotify(false, daemon.SdNotifyReady)
	return err
}

// Watchdog tells the service manager at intervals that the agent is healthy. A manager that
// does not hear from it in time restarts the agent.
type Watchdog struct {
	interval time.Duration
	deps     WatchdogDeps
}

// WatchdogDeps is what a watchdog works with.
type WatchdogDeps struct {
	Healthy func() error
	Clock   clock.WithTicker
	Log     *slog.Logger
}

// NewWatchdog returns nil where the service manager did not ask this process for one.
func NewWatchdog(deps WatchdogDeps) (*Watchdog, error) {
	if deps.Healthy == nil || deps.Clock == nil || deps.Log == nil {
		return nil, errors.New("configure watchdog: health check, clock and log are needed")
	}
	timeout, err := daemon.SdWatchdogEnabled(false)
	switch {
	case err != nil:
		return nil, fmt.Errorf("configure watchdog: %w", err)
	case timeout == 0:
		return nil, nil
	case timeout <= shortestWatchdog:
		return nil, fmt.Errorf("configure watchdog: timeout too small: %s; it must be more than %s", timeout, shortestWatchdog)
	}
	return &Watchdog{interval: timeout / 2, deps: deps}, nil
}

// Run notifies until ctx ends.
func (w *Watchdog) Run(ctx context.Context) error {
	w.deps.Log.Info("watchdog: notifying the service manager", "interval", w.interval)
	tick := w.deps.Clock.NewTicker(w.interval)
	defer tick.Stop()
	for {
		w.notify()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

func (w *Watchdog) notify() {
	if err := w.deps.Healthy(); err != nil {
		w.deps.Log.Error("watchdog: agent is unhealthy, not notifying the service manager", "err", err)
		return
	}
	if _, err := daemon.SdNotify(false, daemon.SdNotifyWatchdog); err != nil {
		w.deps.Log.Error("watchdog: notify service manager failed", "err", err)
	}
}
