package host

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/notify"
)

const (
	// quietPeriod is how long nothing must change until memory is returned.
	quietPeriod = 10 * time.Second
	// returnInterval is the shortest time between two returns, as each collects all garbage.
	returnInterval = time.Minute
)

// Memory is the memory of a process.
type Memory interface {
	// Shrink returns to the kernel what is not in use, and keeps the heap small until Grow.
	Shrink() error
	// Grow lets the heap grow, so that the garbage collector needs less CPU time.
	Grow()
}

// ReturnMemory returns a part of the agent that shrinks its memory whenever changes have ended for a while. The start
// of many pods leaves much more memory than they need, and the garbage collector keeps it for the next start. It does
// nothing without memory.
func ReturnMemory(memory Memory, subscribe func(changed func()), clock clock.Clock, log *slog.Logger) (run func(context.Context) error) {
	return func(ctx context.Context) error {
		if memory == nil {
			return nil
		}
		changes := notify.New()
		subscribe(changes.Notify)
		quiet := clock.NewTimer(quietPeriod)
		defer quiet.Stop()
		var shrunk bool
		var last time.Time
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-changes:
				if shrunk {
					memory.Grow()
					shrunk = false
				}
				quiet.Reset(max(quietPeriod, returnInterval-clock.Since(last)))
			case <-quiet.C():
				if err := memory.Shrink(); err != nil {
					log.Debug("host: return memory failed", "err", err)
				}
				shrunk, last = true, clock.Now()
			}
		}
	}
}

// ProcessMemory is the memory of this process.
type ProcessMemory struct{}

// quietPercent is how much garbage the heap may have while nothing changes, in percent of what is in use. An idle
// agent makes so little that it is collected once in some minutes nevertheless.
const quietPercent = 20

// Shrink implements Memory.
func (ProcessMemory) Shrink() error {
	setGCPercent(quietPercent)
	debug.FreeOSMemory()
	return releaseProgram()
}

// Grow implements Memory.
func (ProcessMemory) Grow() { setGCPercent(100) }

// setGCPercent does nothing if the environment variable GOGC sets it.
func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
