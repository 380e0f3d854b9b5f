package host

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"runtime/metrics"
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
	// Grow lets the heap grow, so that the garbage collector needs less CPU time. It is called for each change.
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
		var last time.Time
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-changes:
				memory.Grow()
				quiet.Reset(max(quietPeriod, returnInterval-clock.Since(last)))
			case <-quiet.C():
				if err := memory.Shrink(); err != nil {
					log.Debug("host: return memory failed", "err", err)
				}
				last = clock.Now()
			}
		}
	}
}

// ProcessMemory is the memory of this process. Its methods must not be called concurrently.
type ProcessMemory struct{ percent int }

// How much garbage the heap may have, in percent of what is in use. What is left in use after a burst of starts lies
// scattered over all that the heap has ever taken, so this decides how much memory many settled pods take. A collection
// of a small heap costs little memory to avoid, and an idle agent makes so little garbage that it is collected once in
// some minutes nevertheless.
const (
	smallPercent = 100
	largePercent = 30
	quietPercent = 20 // while nothing changes

	largeHeap = 8 << 20 // in use: the heap of about 150 pods
)

// Shrink implements Memory.
func (m *ProcessMemory) Shrink() error {
	m.setPercent(quietPercent)
	debug.FreeOSMemory()
	return releaseProgram()
}

// Grow implements Memory.
func (m *ProcessMemory) Grow() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Uint64() < largeHeap {
		m.setPercent(smallPercent)
	} else {
		m.setPercent(largePercent)
	}
}

// setPercent does nothing if the environment variable GOGC sets it.
func (m *ProcessMemory) setPercent(percent int) {
	if percent != m.percent && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	m.percent = percent
}
