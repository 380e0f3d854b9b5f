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

// publish derives the pod's status, hands it on, and has the right containers probed.
func (s *Steps) publish(w pod.Work, observed pod.Observed, way course) v1.PodStatus {
	shown, known := s.deps.Status.Get(w.Pod.UID)
	if !known { // the agent is new to this pod; the API server may not be
		shown = w.Pod.Status
		if w.Mirror != nil {
			shown = w.Mirror.Status
		}
	}
	if way == stopped {
		s.deps.Probes.Forget(w.Pod.UID)
	} else {
		s.deps.Probes.Watch(w.Pod, &observed, s.podIP(w.Pod, &observed), &shown, way == stopping)
	}
	return s.deps.Status.Set(w.Pod, podstatus.Compute(podstatus.Input{
		Pod:         w.Pod,
		Observed:    &observed,
		Previous:    shown,
		Health:      s.deps.Probes.Health,
		Waiting:     s.waiting.of(w.Pod.UID),
		Failure:     w.Failure,
		HostIPs:     s.deps.HostIPs(),
		Runtime:     s.cfg.RuntimeName,
		Now:         s.deps.Clock.Now(),
		StopSignals: s.cfg.StopSignals,
		Stopped:     way == stopped,
	}))
}

// podIP is where the pod's probes and hooks reach it.
func (s *Steps) podIP(p *v1.Pod, observed *pod.Observed) string {
	ips := sandboxIPs(observed)
	if p.Spec.HostNetwork {
		ips = s.deps.HostIPs()
	}
	if len(ips) == 0 {
		return ""
	}
	return ips[0]
}
