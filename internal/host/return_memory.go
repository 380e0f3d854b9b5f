package host

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/notify"
)

// quietPeriod is how long nothing must change until memory is returned.
const quietPeriod = 30 * time.Second

// ReturnMemory returns a part of the agent that calls free whenever changes have ended for a while. The start of
// many pods leaves much more memory than they need, and the garbage collector keeps it for the next start. It does
// nothing without free.
func ReturnMemory(free func(), subscribe func(changed func()), clock clock.Clock) (run func(context.Context) error) {
	return func(ctx context.Context) error {
		if free == nil {
			return nil
		}
		changes := notify.New()
		subscribe(changes.Notify)
		quiet := clock.NewTimer(quietPeriod)
		defer quiet.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-changes:
				quiet.Reset(quietPeriod)
			case <-quiet.C():
				free()
			}
		}
	}
}
