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
}

// Actions is what to do now. The zero value means: all is as it should be.
type Actions struct {
	// NewSandbox asks for a sandbox with this attempt number. All that still runs of the
	// pod is to be stopped first.
	NewSandbox bool
	Attempt    uint32
	// Kill lists running containers that must stop, before anything is started.
	Kill []Kill
	// Start lists containers to create and start, in this order.
	Start []Start
	// Upcoming lists containers that will start later (behind init containers): their
	// images can be fetched meanwhile.
	Upcoming []*v1.Container
}

// Kill names a container that must stop, and why.
type Kill struct {
	Container pod.Container
	Reason    KillReason
	// Restart: a new instance stands in Start.
	Restart bool
}

// exitKilled is the exit code of a container that was ended by SIGKILL.
const exitKilled = 137

// KillReason says why a running container must stop.
type KillReason int

const (
	Liveness KillReason = iota
	Startup
	Changed
	NoSandbox
)

// Start names a container to run.
type Start struct {
	Container *v1.Container
	Kind      pod.ContainerKind
	// Previous is the instance that ran before, nil for the first start.
	Previous *pod.Container
	// Adopt is the id of an instance that was created but never started: it only needs
	// starting. Empty where there is none.
	Adopt string
}

// RestartCount is the count the new instance carries.
func (s Start) RestartCount() int {
	if s.Previous == nil {
		return 0
	}
	return s.Previous.RestartCount + 1
}

// Compute decides the next actions for a pod that is meant to run. A pod that is being
// deleted, or whose containers are all done, is not for Compute: see Finished.
func Compute(in Input) Actions {
	if in.Health == nil {
		in.Health = func(string) pod.Health { return pod.Health{} }
	}
	if renew, attempt := sandboxNeeded(in.Pod, in.Observed); renew {
		return fresh(in, attempt)
	}
	var a Actions
	startEphemeral(in, &a)
	if initialized := planInit(in, &a); initialized {
		planMain(in, &a)
	} else {
		for i := range in.Pod.Spec.Containers {
			a.Upcoming = append(a.Upcoming, &in.Pod.Spec.Containers[i])
		}
	}
	return a
}

// current returns the newest instance of a container that lives in the present sandbox:
// those of an earlier one cannot be adopted, only restarted.
func current(in Input, name string) (latest *pod.Container, inSandbox bool) {
	latest = in.Observed.Latest(name)
	if latest == nil {
		return nil, false
	}
	sandbox := in.Observed.Sandbox()
	return latest, sandbox != nil && !latest.CreatedAt.Before(sandbox.CreatedAt)
}

// startOf fills in a Start from what ran before.
func startOf(in Input, c *v1.Container, kind pod.ContainerKind) Start {
	s := Start{Container: c, Kind: kind}
	latest, inSandbox := current(in, c.Name)
	if latest == nil {
		return s
	}
	if latest.State == pod.Created {
		if inSandbox && latest.Hash == in.Hash(c) {
			s.Adopt = latest.ID
		}
		// An instance that never started does not count as a run.
		for _, older := range in.Observed.Instances(c.Name)[1:] {
			s.Previous = &older
			break
		}
		if s.Adopt == "" {
			s.Previous = latest
		}
		return s
	}
	s.Previous = latest
	return s
}

// Idle reports whether there is nothing to do now.
func (a Actions) Idle() bool { return !a.NewSandbox && len(a.Kill) == 0 && len(a.Start) == 0 }
