package podstatus

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// phase derives the pod's phase from the states of its containers.
func phase(in Input, s *v1.PodStatus) v1.PodPhase {
	t := tally{}
	t.init(in, s)
	t.main(in, s)
	// No controller waits for the end of a static pod: its phase follows from exit codes alone.
	final := in.Stopped && !pod.IsStatic(in.Pod)
	switch {
	case t.initFailed:
		return v1.PodFailed
	case t.pending || t.waiting > 0:
		if final {
			return v1.PodFailed
		}
		return v1.PodPending
	case t.running > 0:
		return v1.PodRunning
	case t.restarting > 0 && !final:
		return v1.PodRunning
	case t.stopped == t.succeeded:
		return v1.PodSucceeded
	default:
		return v1.PodFailed
	}
}

// withAPIPhase returns the previous status, with the phase of the API server if only that one is
// terminal: another component has ended the pod.
func withAPIPhase(in Input) v1.PodStatus {
	s, api := in.Previous, &in.Pod.Status
	if pod.IsTerminal(api.Phase) && !pod.IsTerminal(s.Phase) {
		s.Phase, s.Reason, s.Message = api.Phase, api.Reason, api.Message
	}
	return s
}

// tally counts main containers, and sidecars where they affect the phase.
type tally struct {
	initFailed bool // an init container failed and will not restart
	pending    bool // an init container has not completed, or a sidecar has not started
	// running includes sidecars: a pod has not ended while one of them runs.
	running, waiting   int
	stopped, succeeded int
	restarting         int // stopped containers that will restart
}

func (t *tally) init(in Input, s *v1.PodStatus) {
	begun := in.Observed.MainCreated(in.Pod)
	for i := range in.Pod.Spec.InitContainers {
		c, one := &in.Pod.Spec.InitContainers[i], &s.InitContainerStatuses[i]
		end := pod.LastTermination(one)
		switch {
		case pod.IsSidecar(c) && one.State.Running != nil:
			t.running++
			// A sidecar that restarts does not make the pod pending again.
			t.pending = t.pending || (!*one.Started && !begun)
		case pod.IsSidecar(c) && end == nil:
			t.waiting++
		case pod.IsSidecar(c): // it will restart, so its exit does not count
		case end == nil:
			t.pending = true
		case end.ExitCode != 0:
			t.initFailed = t.initFailed || !pod.ShouldRunByStatus(in.Pod, c, pod.Init, one)
		}
	}
}

func (t *tally) main(in Input, s *v1.PodStatus) {
	for i := range in.Pod.Spec.Containers {
		c := &in.Pod.Spec.Containers[i]
		one := pod.FindStatus(s, c.Name)
		end := pod.LastTermination(one)
		switch {
		case one.State.Running != nil:
			t.running++
		case end == nil:
			t.waiting++
		default:
			t.stopped++
			if one.State.Terminated != nil && end.ExitCode == 0 {
				t.succeeded++
			}
			if pod.ShouldRunByStatus(in.Pod, c, pod.Main, one) {
				t.restarting++
			}
		}
	}
}
