package podsync

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/podstatus"
)

// podState is where a pod is in its life.
type podState int

const (
	running podState = iota
	stopping
	stopped // no container runs, and none will start again
)

// publish derives the pod's status, passes it to the publisher and updates which containers are
// probed. It returns the derived status. The published one may differ: the publisher shows no
// terminal phase while a container runs.
func (s *PodSteps) publish(w pod.Work, observed pod.Observed, state podState) v1.PodStatus {
	published := s.published(w.Pod)
	if state == stopped {
		s.deps.Probes.Forget(w.Pod.UID)
	} else {
		var shown *v1.PodStatus
		if status, known := s.deps.Status.Published(w.Pod); known {
			shown = &status
		}
		s.deps.Probes.Watch(w.Pod, &observed, s.podIP(w.Pod, &observed), shown, state == stopping)
	}
	status := podstatus.Compute(podstatus.Input{
		Pod:          w.Pod,
		Observed:     &observed,
		Previous:     published,
		Health:       s.deps.Probes.Health,
		Waiting:      s.waitingReasons,
		Failure:      w.Failure,
		HostIPs:      s.deps.Node.HostIPs(),
		IPv6First:    s.cfg.IPv6First,
		Runtime:      s.cfg.RuntimeName,
		Now:          s.deps.Clock.Now(),
		Fields:       s.cfg.Fields,
		Actual:       s.actual(w.Pod.UID),
		Resize:       w.Resize,
		ResizeError:  s.resizeError,
		Stopped:      state == stopped,
		VolumeHealth: s.deps.Volumes.Health(w.Pod.UID, published.VolumeHealth),
		RecursiveReadOnly: func() bool {
			handler, err := s.deps.Node.Handler(w.Pod)
			return err == nil && handler.RecursiveReadOnly
		},
		ResourceHealth: func(container string) []v1.ResourceStatus { return s.deps.Resources.Health(w.Pod, container) },
	})
	s.deps.Status.Set(w.Pod, status)
	if state == running {
		s.resizeCompleted(w.Pod, &published, &status)
	}
	return status
}

// published returns the status last published. After a restart of the kubelet it is that of the
// API server.
func (s *Steps) published(p *v1.Pod) v1.PodStatus {
	if status, known := s.deps.Status.Get(p.UID); known {
		return status
	}
	status, _ := s.deps.Status.Published(p)
	return status
}

// podIP returns the address for the pod's probes and hooks.
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
