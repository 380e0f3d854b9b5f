package worker

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// Table lists the pods that have a worker, and what stage each is in. It exists before the
// Pool, for those that the workers' steps are built from.
type Table struct {
	mu      sync.Mutex
	workers map[types.UID]*worker
}

// NewTable makes an empty table.
func NewTable() *Table { return &Table{workers: map[types.UID]*worker{}} }

// Stage tells where a pod stands; found is false for a pod without a worker.
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

// Ended reports whether a pod has ended, and is there only to be remembered.
func (t *Table) Ended(uid types.UID) bool {
	stage, found := t.Stage(uid)
	return found && stage == Ended
}

// Active lists the pods that hold, or are about to hold, the node's resources. One that no
// source wants, or that makes room for another, is on its way out: its successor need not
// wait to be admitted. Nor is it held up by one that was rejected.
func (t *Table) Active() []*v1.Pod {
	t.mu.Lock()
	workers := slices.Collect(maps.Values(t.workers))
	t.mu.Unlock()
	var active []*v1.Pod
	for _, w := range workers {
		w.mu.Lock()
		if w.stage < Finishing && !w.work.Unwanted && !w.yields && !w.rejected {
			active = append(active, w.work.Pod)
		}
		w.mu.Unlock()
	}
	return active
}

// Standing is where one pod stands.
type Standing struct {
	Stage            Stage
	Static           bool
	Orphan, Unwanted bool // as in pod.Work
}

// Standings lists where all pods stand, in no order.
func (t *Table) Standings() []Standing {
	t.mu.Lock()
	workers := slices.Collect(maps.Values(t.workers))
	t.mu.Unlock()
	all := make([]Standing, 0, len(workers))
	for _, w := range workers {
		w.mu.Lock()
		all = append(all, Standing{Stage: w.stage, Static: pod.IsStatic(w.work.Pod), Orphan: w.work.Orphan, Unwanted: w.work.Unwanted})
		w.mu.Unlock()
	}
	return all
}

// named finds the worker of a pod by its full name. Called under the lock.
func (t *Table) named(fullName string) *worker {
	for _, w := range t.workers {
		if w.ref.FullName() == fullName {
			return w
		}
	}
	return nil
}

// KnownByName reports whether a pod of this full name has a worker.
func (t *Table) KnownByName(fullName string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.named(fullName) != nil
}

// Known reports whether the pod has a worker.
func (t *Table) Known(uid types.UID) bool {
	_, found := t.Stage(uid)
	return found
}
