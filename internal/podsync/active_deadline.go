package podsync

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/instant"
	"swiftlet/internal/pod"
)

// activeDeadline is when a pod with this limit and start must end.
type activeDeadline struct {
	limit   int64
	started time.Time // of the status
	at      time.Time
}

// deadline returns a failure if the pod's active deadline has passed, otherwise the time left. A step of the
// wall clock while the pod runs does not change it.
func (s *PodSteps) deadline(p *v1.Pod, status *v1.PodStatus) (*pod.Failure, time.Duration) {
	limit := p.Spec.ActiveDeadlineSeconds
	if limit == nil || status.StartTime == nil {
		return nil, 0
	}
	now := s.deps.Clock.Now()
	if d := &s.activeUntil; d.at.IsZero() || d.limit != *limit || !d.started.Equal(status.StartTime.Time) {
		end := status.StartTime.Add(pod.Seconds(*limit))
		*d = activeDeadline{*limit, status.StartTime.Time, instant.Of(end, now)}
	}
	if left := s.activeUntil.at.Sub(now); left > 0 {
		return nil, left
	}
	const message = "Pod was active on the node longer than the specified deadline"
	s.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeNormal, "DeadlineExceeded", message)
	return &pod.Failure{Reason: "DeadlineExceeded", Message: message}, 0
}
