package agent

import "swiftlet/internal/host"

// newWatchdog adds the watchdog where the service manager asks for one.
func newWatchdog(b *base, healthy func() error) error {
	w, err := host.NewWatchdog(host.WatchdogDeps{Healthy: healthy, Clock: b.clock, Log: b.log})
	if w == nil {
		return err
	}
	return b.addUnless(err, "watchdog", w.Run)
}
