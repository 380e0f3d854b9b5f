package admit

import (
	"errors"
	"log/slog"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/allocation"
)

// Allocator allocates resources to pods.
type Allocator interface {
	// Allocated is the pod with its allocated resources, and whether its spec asks for others.
	Allocated(p *v1.Pod) (allocated *v1.Pod, differ bool)
	// Admit allocates what a new pod asks for.
	Admit(p *v1.Pod)
	// Resize allocates what a pod asks for now, if it can have that beside the others.
	Resize(p *v1.Pod, others []*v1.Pod, trigger string) (allocated *v1.Pod, resize pod.Resize, changed bool)
	// Retry tries deferred resizes again and passes those with a new outcome to handle.
	Retry(wanted func(types.UID) (*v1.Pod, bool), active func() []*v1.Pod, trigger string, handle func(pod.Change))
}

// Workers know the pods that were admitted.
type Workers interface {
	Known(types.UID) bool
	// Active are the pods that have not ended, with their allocated resources.
	Active() []*v1.Pod
}

// Deps is what an Admission works with.
type Deps struct {
	// Check says why a pod cannot run beside the others.
	Check     Check
	Allocator Allocator
	Workers   Workers
	// Shown is the status of a pod as it was last derived; may be nil.
	Shown func(types.UID) (v1.PodStatus, bool)
	// Wanted is the pod as its source has it now.
	Wanted func(types.UID) (*v1.Pod, bool)
	// Node is the one that Check measures pods against; nil where labels do not matter.
	Node *Node
	// Observed is what the runtime has of a pod.
	Observed func(types.UID) (pod.Observed, bool)
	Events   Events
	// Judged counts decisions; the reason is empty where the pod was admitted. May be nil.
	Judged func(p *v1.Pod, rejection string)
	Log    *slog.Logger
}

// Admission decides which pods run, and with which resources. It is for one goroutine: each
// decision rests on the one before. Only Run is for another.
type Admission struct {
	deps  Deps
	held  held
	reads chan struct{} // asks Run to read the Node
	read  chan *v1.Node
}

// Handle takes a change that is decided: its pod has the allocated resources, and failure
// ends a pod that was rejected. Workers must know the pod when it returns.
type Handle = func(c pod.Change, failure *pod.Failure)

// NewAdmission validates and starts nothing.
func NewAdmission(deps Deps) (*Admission, error) {
	if deps.Check == nil || deps.Allocator == nil || deps.Workers == nil || deps.Wanted == nil || deps.Observed == nil || deps.Events == nil || deps.Log == nil {
		return nil, errors.New("new admission: check, allocator, workers, wanted, observed, events and log are needed")
	}
	return &Admission{deps: deps, reads: make(chan struct{}, 1), read: make(chan *v1.Node)}, nil
}

// Admit decides on the changes in their order, and passes each to handle before it decides on
// the next. Those that it takes a read of the Node to decide on are left for Resume.
func (a *Admission) Admit(changes []pod.Change, handle Handle) {
	a.decide(changes, a.hold, handle)
	a.startRead()
}

// decide leaves out what hold keeps back. Last come the pods that are new to this agent and
// ask for other resources than an earlier agent allocated: their resize needs to know all
// others.
func (a *Admission) decide(changes []pod.Change, hold func(pod.Change) bool, handle Handle) {
	var resized []pod.Change
	for _, c := range changes {
		switch {
		case hold(c):
		case a.isResized(c):
			resized = append(resized, c)
		default:
			c = a.allocated(c)
			handle(c, a.admit(c))
		}
	}
	a.readmit(resized, handle)
}

// isResized reports a new pod whose spec differs from what an earlier agent allocated.
func (a *Admission) isResized(c pod.Change) bool {
	if c.Op != pod.Add || c.Pod.DeletionTimestamp != nil {
		return false
	}
	_, differ := a.deps.Allocator.Allocated(c.Pod)
	return differ
}

// allocated is the change with the pod's allocated resources, after a resize if it has one.
func (a *Admission) allocated(c pod.Change) pod.Change {
	if c.Pod.DeletionTimestamp == nil && (c.Op == pod.Update || c.Op == pod.Reconcile) {
		c.Pod, c.Resize, _ = a.deps.Allocator.Resize(c.Pod, a.active(), allocation.TriggerUpdated)
		return c
	}
	c.Pod, _ = a.deps.Allocator.Allocated(c.Pod)
	return c
}

// admit checks a new pod, and allocates its resources if it passes. A pod that has ended or
// is about to end needs no check.
func (a *Admission) admit(c pod.Change) *pod.Failure {
	p := c.Pod
	if c.Op != pod.Add || p.DeletionTimestamp != nil || pod.IsTerminal(p.Status.Phase) {
		return nil
	}
	if !a.deps.Workers.Known(p.UID) {
		if failure := a.check(p, a.active()); failure != nil {
			return failure
		}
	}
	a.deps.Allocator.Admit(p)
	return nil
}

// check is the end of a pod that may not run beside the others; nil for one that may.
func (a *Admission) check(p *v1.Pod, others []*v1.Pod) *pod.Failure {
	rejection := a.deps.Check(p, others)
	if rejection == nil {
		a.judged(p, "")
		return nil
	}
	a.judged(p, rejection.Reason)
	a.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, rejection.Reason, "%s", rejection.Message)
	observed, _ := a.deps.Observed(p.UID) // it may run since an earlier agent admitted it
	return rejection.Failure(len(observed.Live()) == 0)
}

func (a *Admission) judged(p *v1.Pod, rejection string) {
	if a.deps.Judged != nil {
		a.deps.Judged(p, rejection)
	}
}

// readmit admits resized pods with their allocated resources, and then tries each resize
// beside all others.
func (a *Admission) readmit(changes []pod.Change, handle Handle) {
	var admitted []pod.Change
	var beside []*v1.Pod // admitted, but not yet known to the workers
	for _, c := range changes {
		allocated, _ := a.deps.Allocator.Allocated(c.Pod)
		if !a.deps.Workers.Known(c.Pod.UID) && !pod.IsTerminal(c.Pod.Status.Phase) {
			if failure := a.check(allocated, append(a.active(), beside...)); failure != nil {
				c.Pod = allocated
				handle(c, failure)
				continue
			}
		}
		admitted, beside = append(admitted, c), append(beside, allocated)
	}
	for i, c := range admitted {
		c.Pod, c.Resize, _ = a.deps.Allocator.Resize(c.Pod, append(a.active(), beside[i:]...), allocation.TriggerAdded)
		handle(c, nil)
	}
}

// RetryAfter tries deferred resizes again, which these changes may have made room for.
func (a *Admission) RetryAfter(changes []pod.Change, handle Handle) {
	a.retry(allocation.TriggerOf(changes), handle)
}

// RetryPeriodic tries deferred resizes again because time has passed.
func (a *Admission) RetryPeriodic(handle Handle) { a.retry(allocation.TriggerPeriodic, handle) }

// decided is a wanted pod that is not held.
func (a *Admission) decided(uid types.UID) (*v1.Pod, bool) {
	if a.held.find(uid) != nil {
		return nil, false
	}
	return a.deps.Wanted(uid)
}

func (a *Admission) retry(trigger string, handle Handle) {
	a.deps.Allocator.Retry(a.decided, a.active, trigger, func(c pod.Change) { handle(c, nil) })
}
