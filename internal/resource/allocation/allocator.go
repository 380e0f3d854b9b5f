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
	// PodLevel: what the pod as a whole has may change.
	PodLevel bool
	// Infeasible says why p, whose allocated resources are those of allocated, can never have
	// those of its spec; nil where it can. The reason is counted. May be nil.
	Infeasible func(p, allocated *v1.Pod) *pod.Rejection
	// Check says why p cannot have the resources of its spec beside the others now; nil where
	// it can.
	Check  func(p *v1.Pod, others []*v1.Pod) *pod.Rejection
	Events pod.Events
	Meters Meters
	Clock  clock.PassiveClock
}

// Allocator gives pods their resources. It is safe for concurrent use, but what pods are
// given is for one goroutine to decide: each decision rests on the one before.
type Allocator struct {
	deps Deps

	mu     sync.Mutex
	wishes map[types.UID]wish
}

// wish is what a pod last asked for that was not what it began with, and what came of it.
type wish struct {
	pod.Resize
	// pod asks, and has waited or been refused since; of one that asks for nothing nil.
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
	return &Allocator{deps: deps, wishes: map[types.UID]wish{}}, nil
}

// Allocated is the pod with its allocated resources, and whether its spec asks for others. A
// pod without an allocation is as its spec says.
func (a *Allocator) Allocated(p *v1.Pod) (allocated *v1.Pod, differ bool) {
	r, known := a.deps.Allocated.Get(p.UID)
	if !known {
		return p, false
	}
	if !a.deps.PodLevel { // the reference kubelet does not write them down then
		r.Pod = p.Spec.Resources
	}
	return r.Apply(p)
}

// Admit gives an admitted pod what it asks for. Who starts the pod waits until that is
// written down.
func (a *Allocator) Admit(p *v1.Pod) {
	if _, known := a.deps.Allocated.Get(p.UID); !known {
		a.deps.Allocated.Note(p.UID, pod.ResourcesOf(p))
	}
}

// Resize gives a pod what its spec asks for now, if it can have that beside the others.
// changed tells that the answer is not what it was. trigger is what made it worth asking.
func (a *Allocator) Resize(p *v1.Pod, others []*v1.Pod, trigger string) (allocated *v1.Pod, resize pod.Resize, changed bool) {
	allocated, differ := a.Allocated(p)
	before := a.wish(p.UID)
	now := wish{Resize: pod.Resize{Granted: before.Granted}}
	a.measureWish(before, p, differ)
	if !differ {
		a.measureEnd(before, reverted, trigger)
	} else if reason, rejection := a.judge(p, allocated, except(others, p.UID)); rejection != nil {
		now.pod, now.since = p, before.since
		a.refuse(&now, before, reason, rejection)
	} else {
		allocated, now.Granted = p, p.Generation
		a.grant(p)
		a.measureEnd(before, accepted, trigger)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Resize == (pod.Resize{}) {
		delete(a.wishes, p.UID)
	} else {
		a.wishes[p.UID] = now
	}
	return allocated, now.Resize, now.Granted != before.Granted || !same(now.Pending, before.Pending)
}

// measureWish counts what the pod asks for, where it is news: against what it asked for
// last, or where that is as it was given, against that.
func (a *Allocator) measureWish(before wish, p *v1.Pod, differ bool) {
	last, _ := a.deps.Allocated.Get(p.UID)
	if before.Pending != nil {
		if before.pod.Generation == p.Generation {
			return
		}
		last = pod.ResourcesOf(before.pod)
	} else if !differ {
		return
	}
	a.deps.Meters.measureAsked(last, p)
}

// judge says why a resize is not granted, and for which of the API's two reasons. One that is
// infeasible is not tried again before the pod changes.
func (a *Allocator) judge(p, allocated *v1.Pod, others []*v1.Pod) (reason string, rejection *pod.Rejection) {
	if a.deps.Infeasible != nil {
		if rejection := a.deps.Infeasible(p, allocated); rejection != nil {
			return v1.PodReasonInfeasible, rejection
		}
	}
	return v1.PodReasonDeferred, a.deps.Check(p, others)
}

// refuse records why a resize is not granted, with one event for each reason and generation.
func (a *Allocator) refuse(now *wish, before wish, reason string, rejection *pod.Rejection) {
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

// grant notes that the pod has what it asks for. Who changes the pod waits until that is
// written down.
func (a *Allocator) grant(p *v1.Pod) {
	asked := pod.ResourcesOf(p)
	a.deps.Allocated.Change(p.UID, func(r *pod.Resources) { r.Containers, r.Pod = asked.Containers, asked.Pod })
	a.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeNormal, "ResizeStarted", "%s",
		pod.ResizeMessage("Pod resize started", p, p.Generation, ""))
}

func same(a, b *pod.PendingResize) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func except(pods []*v1.Pod, uid types.UID) []*v1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *v1.Pod) bool { return p.UID == uid })
}

func (a *Allocator) wish(uid types.UID) wish {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wishes[uid]
}

// Pending lists the pods whose resize is not granted, by why, in the API's words.
func (a *Allocator) Pending() map[string][]*v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[string][]*v1.Pod{}
	for _, w := range a.wishes {
		if w.Pending != nil {
			all[w.Pending.Reason] = append(all[w.Pending.Reason], w.pod)
		}
	}
	return all
}

// Deferred lists the pods whose resize waits for room, in no order.
func (a *Allocator) Deferred() []types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(a.wishes)), func(uid types.UID) bool {
		pending := a.wishes[uid].Pending
		return pending == nil || pending.Reason != v1.PodReasonDeferred
	})
}

// Forget takes back what a pod was given, when nothing is left of it.
func (a *Allocator) Forget(uid types.UID) {
	a.deps.Allocated.Forget(uid)
	a.measureEnd(a.wish(uid), terminated, "")
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.wishes, uid)
}
