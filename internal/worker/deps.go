package worker

import (
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/contain"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
)

// Deps are the dependencies of a Pool.
type Deps struct {
	// NewSteps returns the steps of one pod. The pool calls it once per worker, and again after a
	// panic, with a lock held.
	NewSteps func() Steps
	// Events may be nil.
	Events pod.Events
	// Waits is called for a pod whose first step waits for the end of other pods; may be nil.
	Waits func(*v1.Pod)
	// Retries is called with the time of a pod's next step, if that is known; may be nil.
	Retries func(uid types.UID, at time.Time)
	// Panics reports the panics of steps.
	Panics contain.Reporter
	Meters Meters
	Clock  clock.Clock
	Log    *slog.Logger
}

// Meters are the metrics of a Pool; each may be nil.
type Meters struct {
	// FirstSync is called before the first Sync of each pod.
	FirstSync func(*v1.Pod)
	// Step times steps from the event that caused them to their end, by operation: create,
	// update, sync, kill, terminated.
	Step meter.TimingOf
	// Restarted is called for a pod that starts again after one with the same UID is gone.
	Restarted func(*v1.Pod)
	// Orphaned counts the pods that the runtime had and no source did.
	Orphaned meter.Count
}
