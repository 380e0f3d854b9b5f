package admit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Check returns why a pod cannot run on this node, or nil. others are the active pods. A check
// must not change the pods.
type Check func(p *v1.Pod, others []*v1.Pod) *pod.Rejection

// Admitter runs checks in order.
type Admitter struct{ checks []Check }

// New returns an Admitter that runs the checks in the given order.
func New(checks ...Check) (*Admitter, error) {
	for i, c := range checks {
		if c == nil {
			return nil, fmt.Errorf("new admitter: check %d is nil", i)
		}
	}
	return &Admitter{checks}, nil
}

// Admit returns the first rejection, or nil if every check passes.
func (a *Admitter) Admit(p *v1.Pod, others []*v1.Pod) *pod.Rejection {
	for _, check := range a.checks {
		if rejection := check(p, others); rejection != nil {
			return rejection
		}
	}
	return nil
}
