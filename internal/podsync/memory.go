package podsync

import (
	"swiftlet/internal/backoff"
	"swiftlet/internal/pod"
)

// memory is what the steps remember of one pod between calls. It cannot be read back from
// anywhere. The pod's worker owns it: only the goroutine that calls a step may read and write it,
// not the goroutines that a step starts.
type memory struct {
	crashBackoff crashBackoff
	startBackoff startBackoff
	// waitingReasons are the reasons of waiting containers, by name, until they run.
	waitingReasons map[string]pod.Waiting
	// pinnedCPUs are the cpusets that this kubelet has set, by container id. The runtime sends no
	// event for such a change, so the observed ones are out of date.
	pinnedCPUs map[string]string
	// needsRefresh: the steps have acted on the pod and failed to read it since.
	needsRefresh bool
	// exits are the times of the last exits, by container name, on the monotonic clock.
	exits map[string]exitTime
	// activeUntil is the end of the pod's active deadline.
	activeUntil activeDeadline
	// resizeError is why the pod does not have its allocated resources yet; "" is none.
	resizeError string
}

func newMemory(curve backoff.Backoff) memory {
	return memory{
		crashBackoff:   newCrashBackoff(curve),
		startBackoff:   startBackoff{},
		waitingReasons: map[string]pod.Waiting{},
		pinnedCPUs:     map[string]string{},
		exits:          map[string]exitTime{},
	}
}
