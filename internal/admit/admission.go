package admit

import (
	"log/slog"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/contain"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/resource/allocation"
)

// Allocator allocates resources to pods.
type Allocator interface {
	// Allocated is the pod with its allocated resources. differ reports whether its spec
	// requests others.
	Allocated(p *v1.Pod) (allocated *v1.Pod, differ bool)
	// Admit allocates the resources of a new pod's spec.
	Admit(p *v1.Pod)
	// Resize allocates the resources of the pod's spec if the node has them in addition to
	// those of the others.
	Resize(p *v1.Pod, others func() []*v1.Pod, trigger string) (allocated *v1.Pod, resize pod.Resize, changed bool)
	// Retry retries deferred resizes and passes those with a new outcome to handle.
	Retry(desired func(types.UID) (*v1.Pod, bool), active func() []*v1.Pod, trigger string, handle func(pod.Change))
}

// Workers has the pods that passed admission or were rejected.
type Workers interface {
	Known(types.UID) bool
	// Active lists the pods that use the node's resources, with their allocated resources.
	Active() []*v1.Pod
}

// Deps are the dependencies of an Admission.
type Deps struct {
	// Check returns why a pod cannot run in addition to the others.
	Check     Check
	Allocator Allocator
	Workers   Workers
	// Status is the last derived status of a pod; may be nil.
	Status func(types.UID) (v1.PodStatus, bool)
	// Desired is the pod as its source has it now.
	Desired func(types.UID) (*v1.Pod, bool)
	// Node is the Node that Check uses; nil if Check does not use one.
	Node *Node
	// Observed is the pod's last observed state in the runtime.
	Observed func(types.UID) (pod.Observed, bool)
	Events   pod.Events
	// CountDecision counts decisions; reason is empty if the pod was admitted. May be nil.
	CountDecision func(p *v1.Pod, reason string)
	Panics        contain.Reporter
	Log           *slog.Logger
}

// Admission decides which pods run, and with which resources. All methods except Run must be
// called from one goroutine, because each decision depends on the one before.
type Admission struct {
	deps     Deps
	held     held
	used     usage
	requests chan struct{} // requests that Run read the Node
	results  chan *v1.Node
}

// Handle passes a change on to the pod's worker. The pod has its allocated resources. failure
// is not nil if the pod was rejected. Deps.Workers must know the pod when Handle returns.
type Handle = func(c pod.Change, failure *pod.Failure)

// NewAdmission validates deps and starts nothing.
func NewAdmission(deps Deps) (*Admission, error) {
	if err := require.Set("new admission", map[string]any{
		"Check": deps.Check, "Allocator": deps.Allocator, "Workers": deps.Workers, "Desired": deps.Desired,
		"Observed": deps.Observed, "Events": deps.Events, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	return &Admission{deps: deps, requests: make(chan struct{}, 1), results: make(chan *v1.Node)}, nil
}

// Admit decides on the changes in order, and passes each to handle before it decides on the
// next. It holds changes that depend on a read of the Node; Resume decides on these.
func (a *Admission) Admit(changes []pod.Change, handle Handle) {
	a.decide(changes, a.hold, handle)
	a.startRead()
}

// decide decides on the changes for which hold returns false. Pods whose spec differs from
// what an earlier agent allocated come last: their resize depends on all other pods.
func (a *Admission) decide(changes []pod.Change, hold func(pod.Change) bool, handle Handle) {
	var resized []pod.Change
	for _, c := range changes {
		d, ok := a.contain(c, func() decision {
			switch {
			case hold(c):
				return decision{held: true}
			case a.isResized(c):
				return decision{resized: true}
			}
			c := a.allocated(c)
			return decision{change: c, failure: a.admit(c)}
		})
		switch {
		case !ok || d.held:
		case d.resized:
			resized = append(resized, c)
		default:
			handle(d.change, d.failure)
		}
	}
	a.readmit(resized, handle)
}

// isResized reports whether the pod is new to this agent and its spec differs from what an
// earlier agent allocated.
func (a *Admission) isResized(c pod.Change) bool {
	if c.Op != pod.Add || c.Pod.DeletionTimestamp != nil {
		return false
	}
	_, differ := a.deps.Allocator.Allocated(c.Pod)
	return differ
}

// allocated returns the change with the pod's allocated resources. For an update it tries the
// resize first.
func (a *Admission) allocated(c pod.Change) pod.Change {
	if c.Pod.DeletionTimestamp == nil && (c.Op == pod.Update || c.Op == pod.Reconcile) {
		c.Pod, c.Resize, _ = a.deps.Allocator.Resize(c.Pod, a.active, allocation.TriggerUpdated)
		return c
	}
	c.Pod, _ = a.deps.Allocator.Allocated(c.Pod)
	return c
}

// admit checks a new pod, and allocates its resources if it passes. It does not check pods
// that have ended or are being deleted.
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

// check returns the failure of a pod that is rejected, or nil, and records the decision.
func (a *Admission) check(p *v1.Pod, others []*v1.Pod) *pod.Failure {
	rejection := a.deps.Check(p, others)
	if rejection == nil {
		a.countDecision(p, "")
		return nil
	}
	a.countDecision(p, rejection.Reason)
	a.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, rejection.Reason, "%s", rejection.Message)
	observed, _ := a.deps.Observed(p.UID) // it may be running, started by an earlier agent
	return rejection.Failure(len(observed.Live()) == 0)
}

func (a *Admission) countDecision(p *v1.Pod, reason string) {
	if a.deps.CountDecision != nil {
		a.deps.CountDecision(p, reason)
	}
}

// readmit admits resized pods with their allocated resources first, and then tries each
// resize.
func (a *Admission) readmit(changes []pod.Change, handle Handle) {
	var admitted []pod.Change
	var pending []*v1.Pod // admitted, but not yet known to the workers
	for _, c := range changes {
		d, _ := a.contain(c, func() decision {
			c := c
			spec := c.Pod
			c.Pod, _ = a.deps.Allocator.Allocated(spec)
			if a.deps.Workers.Known(spec.UID) || pod.IsTerminal(spec.Status.Phase) {
				return decision{change: c}
			}
			return decision{change: c, failure: a.check(c.Pod, append(a.active(), pending...))}
		})
		if d.failure != nil {
			handle(d.change, d.failure)
			continue
		}
		admitted, pending = append(admitted, c), append(pending, d.change.Pod)
	}
	for i, c := range admitted {
		others := func() []*v1.Pod { return append(a.active(), pending[i:]...) }
		d, _ := a.contain(c, func() decision {
			c := c
			c.Pod, c.Resize, _ = a.deps.Allocator.Resize(c.Pod, others, allocation.TriggerAdded)
			return decision{change: c}
		})
		handle(d.change, d.failure)
	}
}

// RetryAfter retries deferred resizes, because the changes may have freed resources.
func (a *Admission) RetryAfter(changes []pod.Change, handle Handle) {
	a.retry(allocation.TriggerOf(changes), handle)
}

// RetryPeriodic retries deferred resizes at an interval.
func (a *Admission) RetryPeriodic(handle Handle) { a.retry(allocation.TriggerPeriodic, handle) }

// desiredNotHeld returns a desired pod unless a change of it is held.
func (a *Admission) desiredNotHeld(uid types.UID) (*v1.Pod, bool) {
	if a.held.find(uid) != nil {
		return nil, false
	}
	return a.deps.Desired(uid)
}

func (a *Admission) retry(trigger string, handle Handle) {
	_ = a.deps.Panics.Call("admission", func() error {
		a.deps.Allocator.Retry(a.desiredNotHeld, a.active, trigger, func(c pod.Change) { handle(c, nil) })
		return nil
	})
}
