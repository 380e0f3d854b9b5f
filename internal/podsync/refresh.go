package podsync

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// current returns the observed state of the pod. It reads the runtime if the last observation may
// be incomplete: acting on that would start containers twice.
func (s *PodSteps) current(ctx context.Context, p *v1.Pod) (pod.Observed, error) {
	if !s.needsRefresh && !s.deps.Observer.Unread(p.UID) {
		return s.observed(p), nil
	}
	return s.refresh(ctx, p.UID)
}

// refresh reads the pod from the runtime. A failure makes the next step read it again.
func (s *PodSteps) refresh(ctx context.Context, uid types.UID) (pod.Observed, error) {
	observed, err := s.deps.Observer.Refresh(ctx, uid)
	s.needsRefresh = err != nil
	s.observedWith(uid, err)
	if err != nil {
		return pod.Observed{}, fmt.Errorf("read pod from runtime: %w", err)
	}
	return observed, nil
}

// observedWith records a failure to read the pod, or that it is over.
func (s *Steps) observedWith(uid types.UID, err error) {
	step, now := why.Step{Kind: why.Observe}, s.deps.Clock.Now()
	if err != nil {
		s.deps.Why.End(uid, step, err, now, time.Time{})
	} else {
		s.deps.Why.Passed(uid, step, now)
	}
}

// observed returns the pod as last observed.
func (s *Steps) observed(p *v1.Pod) pod.Observed {
	o, ok := s.deps.Observer.Get(p.UID)
	if !ok {
		o.Ref = pod.RefOf(p)
	}
	return o
}
