package worker

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Work is what a step is told about the pod.
type Work struct {
	// Pod is the pod as last wanted. For an orphan (a pod the runtime has and no source
	// wants) only its metadata is known.
	Pod    *v1.Pod
	Mirror *v1.Pod
	// Grace overrides the time containers get to stop, in seconds; nil means the spec's.
	Grace *int64
	// Failure ends the pod whatever its containers say.
	Failure *pod.Failure
	Orphan  bool
	// Unwanted: no source wants the pod any more.
	Unwanted bool
}

// Outcome is what a Sync found.
type Outcome struct {
	// Ended: the pod is done and is to be stopped and finished.
	Ended bool
	// Failure, where Sync itself found a reason to end the pod (its deadline, for one).
	Failure *pod.Failure
	// Again asks for another look after this time; zero means when something happens.
	Again time.Duration
}

// Steps does the work. Calls for one pod never overlap; each may be repeated at any time,
// after a crash too, and must find out for itself what is already done. The context ends
// when the step's purpose does: a Sync when the pod is to stop, a Stop when it must stop
// sooner than it was told.
type Steps interface {
	// Sync brings the pod towards its spec.
	Sync(ctx context.Context, w Work) (Outcome, error)
	// Stop ends all that runs of the pod, and returns nil only when nothing does.
	Stop(ctx context.Context, w Work) error
	// Finish gives back what the pod held and publishes its last status.
	Finish(ctx context.Context, w Work) error
	// Remove deletes what is left of a pod that nobody wants: dead containers, logs, folders.
	Remove(ctx context.Context, w Work) error
}

// Stage is where a pod stands on its way.
type Stage int

const (
	Syncing Stage = iota
	Stopping
	Finishing
	Ended // done, but still wanted by a source: its status and logs stay readable
	Removing
	Gone
)

func (s Stage) String() string {
	return [...]string{"syncing", "stopping", "finishing", "ended", "removing", "gone"}[s]
}
