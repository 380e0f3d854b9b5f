package plan

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Input is everything that a decision depends on.
type Input struct {
	Pod      *v1.Pod
	Observed *pod.Observed
	Health   pod.HealthOf
	// Hash returns the hash of a container's spec. A running container with another hash is
	// replaced.
	Hash func(*v1.Container) string
	// Status is the pod's status as last derived. It has the states of containers that the runtime
	// no longer has; without it they would look like new ones. May be nil.
	Status *v1.PodStatus
	// Actual are the resources in force; nil if the pod is never resized.
	Actual *pod.Resources
}

// Actions is what to do now. The zero value is an empty plan.
type Actions struct {
	// End: the pod's containers have completed or failed. The pod is to be stopped, without a
	// restart. All other fields are zero then.
	End bool
	// Reset lists the instances to remove in this order, after the running ones are killed,
	// because a container's exit restarts all containers. All other fields are zero then. The next
	// plan starts the first init container in the same sandbox.
	Reset []pod.Container
	// NewSandbox: create a sandbox with this attempt number. No container runs then.
	NewSandbox bool
	Attempt    uint32
	// Kill lists running containers to stop before any container starts.
	Kill []Kill
	// Resize: the resources in force differ from the allocated ones. Update lists the containers
	// that are resized without a restart, before any container starts.
	Resize bool
	Update []Update
	// Start lists containers to create and start, in this order.
	Start []Start
}

// Update is a running container whose resources change.
type Update struct {
	Container *v1.Container
	ID        string
	// Have are the resources in force.
	Have pod.Amounts
}

// Kill is a container to stop.
type Kill struct {
	Container pod.Container
	Kind      pod.ContainerKind
	Reason    KillReason
	// Restart: Start has a new instance.
	Restart bool
}

// KillReason is why a container is stopped.
type KillReason int

const (
	Liveness     KillReason = iota // its liveness probe failed
	Startup                        // its startup probe failed
	Changed                        // its spec changed
	NoSandbox                      // it is not in the pod's current sandbox
	UnknownState                   // the runtime does not know its state
	Resized                        // its resources change, and its resize policy is to restart
)

// Start is a container to start.
type Start struct {
	Container *v1.Container
	Kind      pod.ContainerKind
	// RestartCount is that of the new instance.
	RestartCount int
	// Adopt is the id of an instance that is created and not yet started; "" if there is none.
	Adopt string
}

// Compute returns the next actions for a pod that is not being deleted.
func Compute(in Input) Actions {
	if in.Health == nil {
		in.Health = func(string) pod.Health { return pod.Health{} }
	}
	if hasEnded(in) {
		return Actions{End: true}
	}
	if pod.RestartingAll(in.Pod, in.Observed) {
		return Actions{Reset: reset(in)}
	}
	if needed, attempt, _ := pod.SandboxNeeded(in.Pod, in.Observed); needed {
		return planNewSandbox(in, attempt)
	}
	var a Actions
	if superseded := in.Observed.Superseded(); len(superseded) > 0 {
		killAll(in, superseded, &a)
		return a
	}
	startEphemeral(in, &a)
	if initialized := planInit(in, &a); initialized {
		planMain(in, &a)
	}
	planResize(in, &a)
	return a
}

// planNewSandbox plans a pod that has no usable sandbox. Running containers stop first, as the plan
// depends on their exit codes. In a new sandbox all init containers run again, in order; main
// containers that have completed do not.
func planNewSandbox(in Input, attempt uint32) Actions {
	var a Actions
	if live := in.Observed.Live(); len(live) > 0 {
		killAll(in, live, &a)
		return a
	}
	a.NewSandbox, a.Attempt = true, attempt
	if len(in.Pod.Spec.InitContainers) > 0 {
		a.Start = []Start{newStart(in, &in.Pod.Spec.InitContainers[0], pod.Init)}
		return a
	}
	for i := range in.Pod.Spec.Containers {
		if c := &in.Pod.Spec.Containers[i]; shouldRun(in, c, pod.Main) {
			a.Start = append(a.Start, newStart(in, c, pod.Main))
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

// Idle reports whether the plan is empty.
func (a Actions) Idle() bool {
	return !a.End && !a.NewSandbox && len(a.Reset) == 0 && len(a.Kill) == 0 && len(a.Start) == 0 && !a.Resize
}
