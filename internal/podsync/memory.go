package podsync

import (
	"swiftlet/internal/backoff"
	"swiftlet/internal/pod"
)

// memory is what the steps remember of one pod from one call to the next. It cannot be read
// back from anywhere. The pod's worker owns it: only the goroutine that calls a step reads
// and writes it. Goroutines that a step starts leave it alone.
type memory struct {
	crashBackoff crashBackoff
	startBackoff startBackoff
	// waitingReasons say why containers do not run, by name, until they do.
	waitingReasons map[string]pod.Waiting
	// pinnedCPUs are the CPUs that this agent has moved containers to, by container id. The
	// runtime sends no event for such a change, so what was observed lags behind.
	pinnedCPUs map[string]string
	// needsRefresh: the steps have acted on the pod and could not read it since.
	needsRefresh bool
	// resizeError keeps the pod from having the resources that it was given; "" is none.
	resizeError string
}

func newMemory(curve backoff.Backoff) memory {
	return memory{
		crashBackoff:   newCrashBackoff(curve),
		startBackoff:   startBackoff{},
		waitingReasons: map[string]pod.Waiting{},
		pinnedCPUs:     map[string]string{},
	}
}
