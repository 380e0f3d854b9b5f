package worker

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// Table lists the pods that have a worker, and the stage of each. It is separate from the
// Pool because the workers' steps depend on parts that read it.
type Table struct {
	mu      sync.Mutex
	workers map[types.UID]*worker
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{workers: map[types.UID]*worker{}} }

// Stage returns the stage of a pod; found is false for a pod without a worker.
func (t *Table) Stage(uid types.UID) (stage Stage, found bool) {
	t.mu.Lock()
	w := t.workers[uid]
	t.mu.Unlock()
	if w == nil {
		return 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stage, true
}

// Ended reports whether a pod has ended, and has a worker only because it is still in a
// source.
func (t *Table) Ended(uid types.UID) bool {
	stage, found := t.Stage(uid)
	return found && stage == Ended
}

// Active lists the pods that use the node's resources or are about to. It leaves out pods
// that are in no source, preempted pods and rejected pods: admission of a new pod must not
// wait for them.
func (t *Table) Active() []*v1.Pod {
	t.mu.Lock()
	workers := slices.Collect(maps.Values(t.workers))
	t.mu.Unlock()
	var active []*v1.Pod
	for _, w := range workers {
		w.mu.Lock()
		if w.stage < Finishing && !w.work.Unwanted && !w.preempted && !w.rejected {
			active = append(active, w.work.Pod)
		}
		w.mu.Unlock()
	}
	return active
}

// PodState is the state of one pod's worker.
type PodState struct {
	Stage            Stage
	Static           bool
	Orphan, Unwanted bool // as in pod.Work
}

// PodStates lists the states of all workers, in no particular order.
func (t *Table) PodStates() []PodState {
	t.mu.Lock()
	workers := slices.Collect(maps.Values(t.workers))
	t.mu.Unlock()
	all := make([]PodState, 0, len(workers))
	for _, w := range workers {
		w.mu.Lock()
		all = append(all, PodState{Stage: w.stage, Static: pod.IsStatic(w.work.Pod), Orphan: w.work.Orphan, Unwanted: w.work.Unwanted})
		w.mu.Unlock()
	}
	return all
}

// byFullName returns the workers of the pods with this full name. The caller holds t.mu.
func (t *Table) byFullName(fullName string) (all []*worker) {
	for _, w := range t.workers {
		if w.ref.FullName() == fullName {
			all = append(all, w)
		}
	}
	return all
}

// KnownByName reports whether a pod with this full name has a worker.
func (t *Table) KnownByName(fullName string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byFullName(fullName)) > 0
}

// Known reports whether the pod has a worker.
func (t *Table) Known(uid types.UID) bool {
	_, found := t.Stage(uid)
	return found
}
