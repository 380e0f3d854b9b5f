package plan

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Input is all that a decision depends on.
type Input struct {
	Pod      *v1.Pod
	Observed *pod.Observed
	Health   pod.HealthOf
	// Hash is the hash a container would be created with now; a running container whose
	// recorded hash differs is replaced.
	Hash func(*v1.Container) string
	// Shown is the pod's status as last derived. It speaks for containers that the runtime
	// has forgotten: without it they would be taken for new. May be nil.
	Shown *v1.PodStatus
	// Actual are the resources that the pod has; nil where it is never resized.
	Actual *pod.Resources
}

// Actions is what to do now. The zero value means: all is as it should be.
type Actions struct {
	// End: the pod's containers have done their part, or cannot. What still runs of it is to
	// be stopped for good. Nothing else is asked for then.
	End bool
	// Reset lists instances to be removed in this order, those that run having been killed,
	// because a container's exit has all of them run anew. Nothing else is asked for then;
	// the plan that follows starts them from the first init container on, in the same sandbox.
	Reset []pod.Container
	// NewSandbox asks for a sandbox with this attempt number. Nothing of the pod runs then.
	NewSandbox bool
	Attempt    uint32
	// Kill lists running containers that must stop, before anything is started.
	Kill []Kill
	// Resize: the pod has other resources than it was given. Update lists the containers that
	// take theirs as they run, before anything is started.
	Resize bool
	Update []Update
	// Start lists containers to create and start, in this order.
	Start []Start
}

// Update names a running container whose resources change.
type Update struct {
	Container *v1.Container
	ID        string
	// Have is what it has now.
	Have pod.Amounts
}

// Kill names a container that must stop, and why.
type Kill struct {
	Container pod.Container
	Kind      pod.ContainerKind
	Reason    KillReason
	// Restart: a new instance stands in Start.
	Restart bool
}

// KillReason says why a running container must stop.
type KillReason int

const (
	Liveness  KillReason = iota
	Startup              // its startup probe gave up
	Changed              // its spec did
	NoSandbox            // it does not belong to the pod's sandbox
	Lost                 // the runtime cannot say what became of it
	Resized              // its resources change, and it is to start with the new ones
)

// Start names a container to run.
type Start struct {
	Container *v1.Container
	Kind      pod.ContainerKind
	// RestartCount is the count the instance carries.
	RestartCount int
	// Adopt is the id of an instance that was created but never started: it only needs
	// starting. Empty where there is none.
	Adopt string
}

// Compute decides the next actions for a pod that is meant to run. A pod that is being
// deleted is not for Compute.
func Compute(in Input) Actions {
	if in.Health == nil {
		in.Health = func(string) pod.Health { return pod.Health{} }
	}
	if ended(in) {
		return Actions{End: true}
	}
	if pod.RestartingAll(in.Pod, in.Observed) {
		return Actions{Reset: reset(in)}
	}
	if needed, attempt, _ := pod.SandboxNeeded(in.Pod, in.Observed); needed {
		return fresh(in, attempt)
	}
	var a Actions
	if strays := in.Observed.Strays(); len(strays) > 0 {
		killAll(in, strays, &a)
		return a
	}
	startEphemeral(in, &a)
	if initialized := planInit(in, &a); initialized {
		planMain(in, &a)
	}
	planResize(in, &a)
	return a
}

// fresh plans a pod that has no usable sandbox. What still runs ends first, so that how it
// ended can be taken into account. With a new sandbox all init containers run again, in
// order; main containers that are done stay done.
func fresh(in Input, attempt uint32) Actions {
	var a Actions
	if live := in.Observed.Live(); len(live) > 0 {
		killAll(in, live, &a)
		return a
	}
	a.NewSandbox, a.Attempt = true, attempt
	if len(in.Pod.Spec.InitContainers) > 0 {
		a.Start = []Start{startOf(in, &in.Pod.Spec.InitContainers[0], pod.Init)}
		return a
	}
	for i := range in.Pod.Spec.Containers {
		if c := &in.Pod.Spec.Containers[i]; due(in, c, pod.Main) {
			a.Start = append(a.Start, startOf(in, c, pod.Main))
		}
	}
	return a
}

func killAll(in Input, containers []pod.Container, a *Actions) {
	for _, c := range containers {
		kind, _ := pod.KindOf(in.Pod, c.Name)
		a.Kill = append(a.Kill, Kill{Container: c, Kind: kind, Reason: NoSandbox})
	}
}

// Idle reports whether there is nothing to do now.
func (a Actions) Idle() bool {
	return !a.End && !a.NewSandbox && len(a.Reset) == 0 && len(a.Kill) == 0 && len(a.Start) == 0 && !a.Resize
}
