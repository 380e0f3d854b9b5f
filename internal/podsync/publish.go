package podsync

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/podstatus"
)

// course is which way a pod is going.
type course int

const (
	running course = iota
	stopping
	stopped // nothing of it runs any more, nor will
)

// publish derives the pod's status, hands it on, and has the right containers probed. It
// returns what was derived: what is shown of it may be held back, as a pod is not said to
// have ended while anything of it runs.
func (s *PodSteps) publish(w pod.Work, observed pod.Observed, way course) v1.PodStatus {
	shown := s.shown(w)
	if way == stopped {
		s.deps.Probes.Forget(w.Pod.UID)
	} else {
		s.deps.Probes.Watch(w.Pod, &observed, s.podIP(w.Pod, &observed), &shown, way == stopping)
	}
	status := podstatus.Compute(podstatus.Input{
		Pod:         w.Pod,
		Observed:    &observed,
		Previous:    shown,
		Health:      s.deps.Probes.Health,
		Waiting:     s.waitingReasons,
		Failure:     w.Failure,
		HostIPs:     s.deps.Node.HostIPs(),
		IPv6First:   s.cfg.IPv6First,
		Runtime:     s.cfg.RuntimeName,
		Now:         s.deps.Clock.Now(),
		Fields:      s.cfg.Fields,
		Actual:      s.actual(w.Pod.UID),
		Resize:      w.Resize,
		ResizeError: s.resizeError,
		Stopped:     way == stopped,
		Volumes:     s.deps.Volumes.Health(w.Pod.UID, shown.VolumeHealth),
		RecursiveReadOnly: func() bool {
			handler, err := s.deps.Node.Handler(w.Pod)
			return err == nil && handler.RecursiveReadOnly
		},
		Resources: func(container string) []v1.ResourceStatus { return s.deps.Resources.Health(w.Pod, container) },
	})
	s.deps.Status.Set(w.Pod, status)
	if way == running {
		s.tellResized(w.Pod, &shown, &status)
	}
	return status
}

// shown is the status last published. An agent that is new to a pod begins with what the
// API server shows, of a static pod through its mirror, unless that is still the image of
// an earlier pod of the same name.
func (s *Steps) shown(w pod.Work) v1.PodStatus {
	if shown, known := s.deps.Status.Get(w.Pod.UID); known {
		return shown
	}
	if w.Mirror != nil && w.Mirror.Annotations[pod.AnnotationMirror] == w.Pod.Annotations[pod.AnnotationHash] {
		return w.Mirror.Status
	}
	return w.Pod.Status
}

// podIP is where the pod's probes and hooks reach it.
func (s *Steps) podIP(p *v1.Pod, observed *pod.Observed) string {
	ips := s.sandboxIPs(observed)
	if p.Spec.HostNetwork {
		ips = s.deps.Node.HostIPs()
	}
	if len(ips) == 0 {
		return ""
	}
	return ips[0]
}
