package admit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Check looks at one pod that wants to run. others are the pods that have been admitted
// and have not ended. Neither may be changed.
type Check func(p *v1.Pod, others []*v1.Pod) *pod.Rejection

// Admitter asks its checks in order.
type Admitter struct{ checks []Check }

// New makes an Admitter of the checks, in the order in which they are to be asked.
func New(checks ...Check) (*Admitter, error) {
	for i, c := range checks {
		if c == nil {
			return nil, fmt.Errorf("new admitter: check %d is nil", i)
		}
	}
	return &Admitter{checks}, nil
}

// Admit returns the first rejection, nil where every check passes.
func (a *Admitter) Admit(p *v1.Pod, others []*v1.Pod) *pod.Rejection {
	for _, check := range a.checks {
		if rejection := check(p, others); rejection != nil {
			return rejection
		}
	}
	return nil
}
