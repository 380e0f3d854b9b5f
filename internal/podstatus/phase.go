package podstatus

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// phase sums up the containers' states.
func phase(in Input, s *v1.PodStatus) v1.PodPhase {
	initial := tallyInit(in, s)
	if initial.dead {
		return v1.PodFailed
	}
	main := tallyMain(in, s)
	switch {
	case initial.pending && main.begun == 0:
		if in.Stopped {
			return v1.PodFailed
		}
		return v1.PodPending
	case main.waiting > 0:
		if in.Stopped {
			return v1.PodFailed
		}
		return v1.PodPending
	case main.running > 0:
		return v1.PodRunning
	case main.stopped == 0:
		return v1.PodPending
	case main.again > 0 && !in.Stopped:
		return v1.PodRunning
	case main.stopped == main.succeeded:
		return v1.PodSucceeded
	default:
		return v1.PodFailed
	}
}

type initTally struct {
	dead    bool // one failed and must not be tried again
	pending bool // they have not all done their work
}

func tallyInit(in Input, s *v1.PodStatus) (t initTally) {
	for i := range in.Pod.Spec.InitContainers {
		c := &in.Pod.Spec.InitContainers[i]
		one := &s.InitContainerStatuses[i]
		switch {
		case pod.IsSidecar(c):
			t.pending = t.pending || !*one.Started
		case one.State.Terminated != nil && one.State.Terminated.ExitCode == 0:
		case one.State.Terminated != nil:
			t.pending = true
			t.dead = t.dead || in.Stopped || !pod.ShouldRestart(in.Pod, c, pod.Init, one.State.Terminated.ExitCode)
		default:
			t.pending = true
		}
	}
	return t
}

type mainTally struct {
	running, waiting   int
	stopped, succeeded int
	again              int // stopped ones that are due to run again
	begun              int // those that ever ran
}

func tallyMain(in Input, s *v1.PodStatus) (t mainTally) {
	for i := range in.Pod.Spec.Containers {
		c := &in.Pod.Spec.Containers[i]
		one := find(*s, c.Name)
		ended := one.State.Terminated
		if one.State.Waiting != nil {
			ended = one.LastTerminationState.Terminated // a crash loop
		}
		switch {
		case one.State.Running != nil:
			t.running++
		case ended == nil:
			t.waiting++
			continue
		default:
			t.stopped++
			if ended.ExitCode == 0 {
				t.succeeded++
			}
			if one.State.Waiting != nil || pod.ShouldRestart(in.Pod, c, pod.Main, ended.ExitCode) {
				t.again++
			}
		}
		t.begun++
	}
	return t
}
