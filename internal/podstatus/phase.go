package podstatus

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// phase sums up the containers' states.
func phase(in Input, s *v1.PodStatus) v1.PodPhase {
	t := tally{}
	t.init(in, s)
	t.main(in, s)
	// Static pods have no owner that waits for their end; theirs is told by their exits alone.
	final := in.Stopped && !pod.IsStatic(in.Pod)
	switch {
	case t.dead:
		return v1.PodFailed
	case t.pending || t.waiting > 0:
		if final {
			return v1.PodFailed
		}
		return v1.PodPending
	case t.running > 0:
		return v1.PodRunning
	case t.again > 0 && !final:
		return v1.PodRunning
	case t.stopped == t.succeeded:
		return v1.PodSucceeded
	default:
		return v1.PodFailed
	}
}

// tally counts main containers, and sidecars as far as they matter to the phase.
type tally struct {
	dead    bool // an init container failed for good
	pending bool // the init containers have not all done their part
	// running counts sidecars too: a pod has not ended while one of them runs.
	running, waiting   int
	stopped, succeeded int
	again              int // stopped ones that are due to run again
}

func (t *tally) init(in Input, s *v1.PodStatus) {
	begun := in.Observed.Begun(in.Pod)
	for i := range in.Pod.Spec.InitContainers {
		c, one := &in.Pod.Spec.InitContainers[i], &s.InitContainerStatuses[i]
		end := pod.LastEnd(one)
		switch {
		case pod.IsSidecar(c) && one.State.Running != nil:
			t.running++
			// One that starts again does not set the others back.
			t.pending = t.pending || (!*one.Started && !begun)
		case pod.IsSidecar(c) && end == nil:
			t.waiting++
		case pod.IsSidecar(c): // it will be back; that it ended says nothing
		case end == nil:
			t.pending = true
		case end.ExitCode != 0:
			t.dead = t.dead || !pod.DueByStatus(in.Pod, c, pod.Init, one)
		}
	}
}

func (t *tally) main(in Input, s *v1.PodStatus) {
	for i := range in.Pod.Spec.Containers {
		c := &in.Pod.Spec.Containers[i]
		one := pod.FindStatus(s, c.Name)
		end := pod.LastEnd(one)
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
			if pod.DueByStatus(in.Pod, c, pod.Main, one) {
				t.again++
			}
		}
	}
}
