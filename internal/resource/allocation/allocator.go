package allocation

import (
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Deps is what an Allocator works with.
type Deps struct {
	Allocated *State
	// PodLevel enables the resize of pod-level resources.
	PodLevel bool
	// Infeasible returns why p, whose allocated resources are those of allocated, can never get
	// the resources of its spec; nil if it can. May be nil.
	Infeasible func(p, allocated *v1.Pod) *pod.Rejection
	// Check returns why p does not fit on the node with the resources of its spec and the other
	// pods now; nil if it does.
	Check  func(p *v1.Pod, others []*v1.Pod) *pod.Rejection
	Events pod.Events
	Meters Meters
	Clock  clock.PassiveClock
}

// Allocator allocates pods' resources. It is safe for concurrent use, but only one goroutine may
// call Admit, Resize and Retry: each decision depends on the one before.
type Allocator struct {
	deps Deps

	mu      sync.Mutex
	resizes map[types.UID]resizeState
}

// resizeState is the state of a pod's last resize.
type resizeState struct {
	pod.Resize
	// pod has the pending resize, which has been deferred or infeasible since; nil if none is
	// pending.
	pod   *v1.Pod
	since time.Time
}

// New validates and starts nothing.
func New(deps Deps) (*Allocator, error) {
	if err := require.Set("new allocator", map[string]any{
		"Allocated": deps.Allocated, "Check": deps.Check, "Events": deps.Events, "Clock": deps.Clock,
	}); err != nil {
		return nil, err
	}
	return &Allocator{deps: deps, resizes: map[types.UID]resizeState{}}, nil
}

// Allocated returns the pod with its allocated resources, and whether its spec has others. A pod
// without an allocation is returned unchanged.
func (a *Allocator) Allocated(p *v1.Pod) (allocated *v1.Pod, differ bool) {
	r, known := a.deps.Allocated.Get(p.UID)
	if !known && a.deps.Allocated.recovering {
		if r, known = recovered(p); known {
			a.deps.Allocated.Note(p.UID, r)
		}
	}
	if !known {
		return p, false
	}
	if !a.deps.PodLevel { // the reference kubelet does not persist them then
		r.Pod = p.Spec.Resources
	}
	return r.Apply(p)
}

// Admit allocates the resources of an admitted pod. Whoever starts the pod must call Written
// first.
func (a *Allocator) Admit(p *v1.Pod) {
	a.Allocated(p) // after a loss of the file, from the pod's status
	if _, known := a.deps.Allocated.Get(p.UID); !known {
		a.deps.Allocated.Note(p.UID, pod.ResourcesOf(p))
	}
}

// Resize allocates the resources of the pod's spec, if they fit on the node with the other pods.
// changed reports whether the result differs from the last one. trigger is what caused the
// attempt. others, which takes long on a node with many pods, is called only if the resources differ.
func (a *Allocator) Resize(p *v1.Pod, others func() []*v1.Pod, trigger string) (allocated *v1.Pod, resize pod.Resize, changed bool) {
	allocated, differ := a.Allocated(p)
	before := a.state(p.UID)
	now := resizeState{Resize: pod.Resize{Granted: before.Granted}}
	a.countRequest(before, p, differ)
	if !differ {
		a.measureWait(before, reverted, trigger)
	} else if reason, rejection := a.evaluate(p, allocated, without(others(), p.UID)); rejection != nil {
		now.pod, now.since = p, before.since
		a.reject(&now, before, reason, rejection)
	} else {
		allocated, now.Granted = p, p.Generation
		a.grant(p)
		a.measureWait(before, accepted, trigger)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Resize == (pod.Resize{}) {
		delete(a.resizes, p.UID)
	} else {
		a.resizes[p.UID] = now
	}
	return allocated, now.Resize, now.Granted != before.Granted || !equalPending(now.Pending, before.Pending)
}

// countRequest counts the changes of a new resize request, relative to the pending request or
// else to the allocation.
func (a *Allocator) countRequest(before resizeState, p *v1.Pod, differ bool) {
	last, _ := a.deps.Allocated.Get(p.UID)
	if before.Pending != nil {
		if before.pod.Generation == p.Generation {
			return
		}
		last = pod.ResourcesOf(before.pod)
	} else if !differ {
		return
	}
	a.deps.Meters.countChanges(last, p)
}

// evaluate returns why a resize is not granted: Infeasible or Deferred. Retry skips infeasible
// resizes.
func (a *Allocator) evaluate(p, allocated *v1.Pod, others []*v1.Pod) (reason string, rejection *pod.Rejection) {
	if a.deps.Infeasible != nil {
		if rejection := a.deps.Infeasible(p, allocated); rejection != nil {
			return v1.PodReasonInfeasible, rejection
		}
	}
	return v1.PodReasonDeferred, a.deps.Check(p, others)
}

// reject records why a resize is not granted, with one event for each reason and generation.
func (a *Allocator) reject(now *resizeState, before resizeState, reason string, rejection *pod.Rejection) {
	p := now.pod
	now.Pending = &pod.PendingResize{Reason: reason, Message: rejection.Message, Generation: p.Generation}
	if before.Pending == nil || before.Pending.Reason != now.Pending.Reason {
		now.since = a.deps.Clock.Now()
	}
	if before.Pending != nil && before.Pending.Reason == now.Pending.Reason && before.Pending.Generation == p.Generation {
		return
	}
	if reason == v1.PodReasonInfeasible {
		a.deps.Meters.Infeasible.Inc(rejection.Reason)
	}
	a.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "Resize"+now.Pending.Reason, "%s",
		pod.ResizeMessage("Pod resize "+now.Pending.Reason, p, p.Generation, rejection.Message))
}

// grant allocates the resources of the pod's spec. Whoever actuates the resize must call Written
// first.
func (a *Allocator) grant(p *v1.Pod) {
	requested := pod.ResourcesOf(p)
	a.deps.Allocated.Change(p.UID, func(r *pod.Resources) { r.Containers, r.Pod = requested.Containers, requested.Pod })
	a.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeNormal, "ResizeStarted", "%s",
		pod.ResizeMessage("Pod resize started", p, p.Generation, ""))
}

func equalPending(a, b *pod.PendingResize) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func without(pods []*v1.Pod, uid types.UID) []*v1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *v1.Pod) bool { return p.UID == uid })
}

func (a *Allocator) state(uid types.UID) resizeState {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.resizes[uid]
}

// Pending returns the pods with a pending resize, by the API's reason.
func (a *Allocator) Pending() map[string][]*v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[string][]*v1.Pod{}
	for _, w := range a.resizes {
		if w.Pending != nil {
			all[w.Pending.Reason] = append(all[w.Pending.Reason], w.pod)
		}
	}
	return all
}

// Deferred returns the pods with a deferred resize, in no order.
func (a *Allocator) Deferred() []types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(a.resizes)), func(uid types.UID) bool {
		pending := a.resizes[uid].Pending
		return pending == nil || pending.Reason != v1.PodReasonDeferred
	})
}

// Forget releases the allocation of a removed pod.
func (a *Allocator) Forget(uid types.UID) {
	a.deps.Allocated.Forget(uid)
	a.measureWait(a.state(uid), terminated, "")
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.resizes, uid)
}
