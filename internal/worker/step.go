package worker

import (
	"context"

	"swiftlet/internal/pod"
)

// Steps does the work for one pod. Only the pod's worker calls it, one step at a time: state
// in the implementation needs no lock, and is dropped with the worker. Every step is
// idempotent: it may run again at any time, also after a crash, and observes what is already
// done. The worker cancels the context of a Sync when the pod must stop, and of a Stop when
// the grace period becomes shorter.
type Steps interface {
	// Sync brings the pod towards its spec.
	Sync(ctx context.Context, w pod.Work) (pod.Outcome, error)
	// Stop stops the pod's containers and sandbox. It returns nil only when none runs.
	Stop(ctx context.Context, w pod.Work) error
	// Finish releases the pod's resources and publishes its last status.
	Finish(ctx context.Context, w pod.Work) error
	// Remove deletes what remains of a pod that is in no source: dead containers, logs,
	// directories.
	Remove(ctx context.Context, w pod.Work) error
}

// Stage is a stage of a pod's life cycle.
type Stage int

const (
	Syncing Stage = iota
	Stopping
	Finishing
	Ended // finished, but still in a source: its status and logs stay readable
	Removing
	Gone
)

func (s Stage) String() string {
	return [...]string{"syncing", "stopping", "finishing", "ended", "removing", "gone"}[s]
}
