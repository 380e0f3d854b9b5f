package worker

import (
	"context"

	"swiftlet/internal/pod"
)

// Steps does the work. Calls for one pod never overlap; each may be repeated at any time,
// after a crash too, and must find out for itself what is already done. The context ends
// when the step's purpose does: a Sync when the pod is to stop, a Stop when it must stop
// sooner than it was told.
type Steps interface {
	// Sync brings the pod towards its spec.
	Sync(ctx context.Context, w pod.Work) (pod.Outcome, error)
	// Stop ends all that runs of the pod, and returns nil only when nothing does.
	Stop(ctx context.Context, w pod.Work) error
	// Finish gives back what the pod held and publishes its last status.
	Finish(ctx context.Context, w pod.Work) error
	// Remove deletes what is left of a pod that nobody wants: dead containers, logs, folders.
	Remove(ctx context.Context, w pod.Work) error
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
