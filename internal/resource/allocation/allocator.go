package allocation

import (
	"errors"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// Objection is what stands against a resize. One that is infeasible is not asked for again
// before the pod changes.
type Objection struct {
	Infeasible bool
	Message    string
}

// Events records what the user should see.
type Events interface {
	Eventf(object apiruntime.Object, eventtype, reason, messageFmt string, args ...any)
}

// Deps is what an Allocator works with.
type Deps struct {
	Allocated *State
	// Judge says what stands against p, which has the resources of given, having those of
	// its own spec beside the others; nil is nothing.
	Judge  func(p, given *v1.Pod, others []*v1.Pod) *Objection
	Events Events
}

// Allocator gives pods their resources. It is safe for concurrent use, but what pods are
// given is for one goroutine to decide: each decision rests on the one before.
type Allocator struct {
	deps Deps

	mu      sync.Mutex
	resizes map[types.UID]pod.Resize
}

// New validates and starts nothing.
func New(deps Deps) (*Allocator, error) {
	if deps.Allocated == nil || deps.Judge == nil || deps.Events == nil {
		return nil, errors.New("allocation: state, judge and events are needed")
	}
	return &Allocator{deps: deps, resizes: map[types.UID]pod.Resize{}}, nil
}

// Given is the pod with the resources that it was given, and whether its spec asks for
// others. One that was given none yet is as its spec says.
func (a *Allocator) Given(p *v1.Pod) (given *v1.Pod, differ bool) {
	r, known := a.deps.Allocated.Get(p.UID)
	if !known {
		return p, false
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
// changed tells that the answer is not what it was.
func (a *Allocator) Resize(p *v1.Pod, others []*v1.Pod) (given *v1.Pod, resize pod.Resize, changed bool) {
	given, differ := a.Given(p)
	before := a.of(p.UID)
	resize = pod.Resize{Granted: before.Granted}
	if differ {
		others = slices.DeleteFunc(slices.Clone(others), func(o *v1.Pod) bool { return o.UID == p.UID })
		if objection := a.deps.Judge(p, given, others); objection != nil {
			resize.Pending = pendingOf(p, objection)
			a.tellPending(p, before.Pending, resize.Pending)
		} else {
			given, resize.Granted = p, p.Generation
			a.grant(p)
			a.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeNormal, "ResizeStarted", "%s",
				pod.ResizeMessage("Pod resize started", p, p.Generation, ""))
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if resize == (pod.Resize{}) {
		delete(a.resizes, p.UID)
	} else {
		a.resizes[p.UID] = resize
	}
	return given, resize, resize.Granted != before.Granted || !same(resize.Pending, before.Pending)
}

// grant notes that the pod has what it asks for. Who changes the pod waits until that is
// written down.
func (a *Allocator) grant(p *v1.Pod) {
	asked := pod.ResourcesOf(p)
	a.deps.Allocated.Change(p.UID, func(r *pod.Resources) { r.Containers, r.Pod = asked.Containers, asked.Pod })
}

func pendingOf(p *v1.Pod, o *Objection) *pod.PendingResize {
	pending := &pod.PendingResize{Reason: v1.PodReasonDeferred, Message: o.Message, Generation: p.Generation}
	if o.Infeasible {
		pending.Reason = v1.PodReasonInfeasible
	}
	return pending
}

// tellPending tells the user once of each kind of refusal.
func (a *Allocator) tellPending(p *v1.Pod, before, now *pod.PendingResize) {
	if before != nil && before.Reason == now.Reason && before.Generation == now.Generation {
		return
	}
	a.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "Resize"+now.Reason, "%s",
		pod.ResizeMessage("Pod resize "+now.Reason, p, p.Generation, now.Message))
}

func same(a, b *pod.PendingResize) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func (a *Allocator) of(uid types.UID) pod.Resize {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.resizes[uid]
}

// Deferred lists the pods whose resize waits for room, in no order.
func (a *Allocator) Deferred() []types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(a.resizes)), func(uid types.UID) bool {
		pending := a.resizes[uid].Pending
		return pending == nil || pending.Reason != v1.PodReasonDeferred
	})
}

// Forget takes back what a pod was given, when nothing is left of it.
func (a *Allocator) Forget(uid types.UID) {
	a.deps.Allocated.Forget(uid)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.resizes, uid)
}
