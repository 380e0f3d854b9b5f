package pod

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Work is the input of a step of a pod's worker.
type Work struct {
	// Pod is the latest version of the pod. That of an orphan, which the runtime has and no source,
	// has only metadata.
	Pod    *v1.Pod
	Mirror *v1.Pod
	Resize Resize // as in Change
	// Grace overrides the grace period, in seconds; nil is the pod's.
	Grace *int64
	// Failure, if set, makes the pod fail whatever the state of its containers.
	Failure *Failure
	Orphan  bool
	// Unwanted: the pod is in no source any more.
	Unwanted bool
	// Returns: the pod is in a source again, with the same UID; it starts after its removal.
	Returns bool
	// ObjectsChanged: a ConfigMap or Secret that the pod uses has changed since the last Sync.
	ObjectsChanged bool
}

// Outcome is the result of Sync.
type Outcome struct {
	// Ended: the pod has ended and is to be stopped and finished.
	Ended bool
	// Failure is set if Sync found a reason for the pod to fail, for example its active deadline.
	Failure *Failure
	// RetryAfter is when to sync again at the latest; zero is at the next event.
	RetryAfter time.Duration
	// AwaitsObjects: a container failed to start, and may start after a change of a ConfigMap or
	// Secret.
	AwaitsObjects bool
}
