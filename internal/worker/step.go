package worker

import (
	"context"

	"swiftlet/internal/pod"
)

// Steps does the work for one pod. Its worker makes all calls, one after the other: what
// the steps remember of the pod needs no lock, and is dropped with the worker. Each call may
// be repeated at any time, after a crash too, and must find out for itself what is already
// done. The context ends when the step's purpose does: a Sync when the pod must stop, a Stop
// when the pod must stop sooner.
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
