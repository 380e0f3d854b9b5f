package pod

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Work is what a step in a pod's life is told about the pod.
type Work struct {
	// Pod is the pod as last wanted. For an orphan (a pod the runtime has and no source
	// wants) only its metadata is known.
	Pod    *v1.Pod
	Mirror *v1.Pod
	Resize Resize // as in Change
	// Grace is the time containers get to stop, in seconds; nil means what the pod says.
	Grace *int64
	// Failure ends the pod whatever its containers say.
	Failure *Failure
	Orphan  bool
	// Unwanted: no source wants the pod any more.
	Unwanted bool
	// Returns: a source wants the same pod again, which starts when this one is removed.
	Returns bool
	// ObjectsChanged: a ConfigMap or Secret that the pod uses has changed since the last Sync.
	ObjectsChanged bool
}

// Outcome is what an attempt to bring a pod up found.
type Outcome struct {
	// Ended: the pod is done and is to be stopped and finished.
	Ended bool
	// Failure, where the attempt itself found a reason to end the pod (its deadline, for one).
	Failure *Failure
	// Again asks for another look after this time; zero means when something happens.
	Again time.Duration
	// AwaitsObjects: a container could not start, which a change of a ConfigMap or Secret may
	// cure.
	AwaitsObjects bool
}
