package host

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"k8s.io/utils/clock"

	"swiftlet/internal/require"
)

// minWatchdog is the shortest accepted timeout: with less, a short load peak would cause a
// restart of the kubelet.
const minWatchdog = time.Second

// NotifyReady notifies systemd, if it started this process, that the kubelet is ready.
func NotifyReady() error {
	_, err := daemon.SdNotify(false, daemon.SdNotifyReady)
	return err
}

// Watchdog notifies systemd periodically while the kubelet is healthy. Without a notification
// within the timeout, systemd restarts the kubelet.
type Watchdog struct {
	interval time.Duration
	deps     WatchdogDeps
}

// WatchdogDeps are the Watchdog's dependencies.
type WatchdogDeps struct {
	Healthy func() error
	Clock   clock.WithTicker
	Log     *slog.Logger
}

// NewWatchdog returns nil if systemd has not requested a watchdog of this process.
func NewWatchdog(deps WatchdogDeps) (*Watchdog, error) {
	if err := require.Set("new watchdog", map[string]any{"Healthy": deps.Healthy, "Clock": deps.Clock, "Log": deps.Log}); err != nil {
		return nil, err
	}
	timeout, err := daemon.SdWatchdogEnabled(false)
	switch {
	case err != nil:
		return nil, fmt.Errorf("new watchdog: %w", err)
	case timeout == 0:
		return nil, nil
	case timeout <= minWatchdog:
		return nil, fmt.Errorf("new watchdog: timeout too small: %s; it must be more than %s", timeout, minWatchdog)
	}
	return &Watchdog{interval: timeout / 2, deps: deps}, nil
}

// Run notifies systemd until ctx is done.
func (w *Watchdog) Run(ctx context.Context) error {
	w.deps.Log.Info("watchdog: notifying systemd", "interval", w.interval)
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
		w.deps.Log.Error("watchdog: kubelet is unhealthy, not notifying systemd", "err", err)
		return
	}
	if _, err := daemon.SdNotify(false, daemon.SdNotifyWatchdog); err != nil {
		w.deps.Log.Error("watchdog: notify systemd failed", "err", err)
	}
}
