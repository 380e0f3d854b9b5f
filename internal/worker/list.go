package worker

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// Stage tells where a pod stands; found is false for a pod without a worker.
func (p *Pool) Stage(uid types.UID) (stage Stage, found bool) {
	p.mu.Lock()
	w := p.workers[uid]
	p.mu.Unlock()
	if w == nil {
		return 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stage, true
}

// Active lists the pods that hold, or are about to hold, the node's resources. One that no
// source wants, or that makes room for another, is on its way out: its successor need not
// wait to be admitted. Nor is it held up by one that was rejected.
func (p *Pool) Active() []*v1.Pod {
	p.mu.Lock()
	workers := slices.Collect(maps.Values(p.workers))
	p.mu.Unlock()
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
func (p *Pool) Standings() []Standing {
	p.mu.Lock()
	workers := slices.Collect(maps.Values(p.workers))
	p.mu.Unlock()
	all := make([]Standing, 0, len(workers))
	for _, w := range workers {
		w.mu.Lock()
		all = append(all, Standing{Stage: w.stage, Static: pod.IsStatic(w.work.Pod), Orphan: w.work.Orphan, Unwanted: w.work.Unwanted})
		w.mu.Unlock()
	}
	return all
}

// named finds the worker of a pod by its full name. Called under the lock.
func (p *Pool) named(fullName string) *worker {
	for _, w := range p.workers {
		if w.ref.FullName() == fullName {
			return w
		}
	}
	return nil
}

// KnownByName reports whether a pod of this full name has a worker.
func (p *Pool) KnownByName(fullName string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.named(fullName) != nil
}

// Known reports whether the pod has a worker.
func (p *Pool) Known(uid types.UID) bool {
	_, found := p.Stage(uid)
	return found
}
