package host

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// quietPeriod is how long nothing must change until memory is returned.
const quietPeriod = 30 * time.Second

// ReturnMemory calls free whenever changes have ended for a while, until ctx is done. The start of many pods
// leaves much more memory than they need, and the garbage collector keeps it for the next start.
func ReturnMemory(ctx context.Context, changes <-chan struct{}, free func(), clock clock.Clock) {
	quiet := clock.NewTimer(quietPeriod)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			quiet.Reset(quietPeriod)
		case <-quiet.C():
			free()
		}
	}
}
