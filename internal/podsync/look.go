package podsync

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// look is what the runtime holds of the pod. It is read anew where what is known of it may
// be less than there is: to act on that would start containers twice.
func (s *Steps) look(ctx context.Context, p *v1.Pod) (pod.Observed, error) {
	if !s.unsure.has(p.UID) && !s.deps.Observer.Unread(p.UID) {
		return s.observed(p), nil
	}
	return s.lookAnew(ctx, p.UID)
}

// lookAnew reads the pod from the runtime. Until that succeeds nothing is sure.
func (s *Steps) lookAnew(ctx context.Context, uid types.UID) (pod.Observed, error) {
	observed, err := s.deps.Observer.Refresh(ctx, uid)
	s.unsure.set(uid, err != nil)
	if err != nil {
		return pod.Observed{}, fmt.Errorf("read what runs of the pod: %w", err)
	}
	return observed, nil
}

// observed is what is known of the pod.
func (s *Steps) observed(p *v1.Pod) pod.Observed {
	o, ok := s.deps.Observer.Get(p.UID)
	if !ok {
		o.Ref = pod.RefOf(p)
	}
	return o
}

// podSet is a set of pods.
type podSet struct {
	mu   sync.Mutex
	pods map[types.UID]bool
}

func (s *podSet) has(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[uid]
}

func (s *podSet) set(uid types.UID, in bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !in {
		delete(s.pods, uid)
		return
	}
	if s.pods == nil {
		s.pods = map[types.UID]bool{}
	}
	s.pods[uid] = true
}
