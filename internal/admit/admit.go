package admit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Verdict is a check's answer. The zero value objects without a reason; use OK.
type Verdict struct {
	Admit bool
	// Reason is one word, and Message a sentence, for the status of a rejected pod.
	Reason, Message string
}

// OK is the verdict of a check that has nothing against the pod.
var OK = Verdict{Admit: true}

// Reject objects to the pod.
func Reject(reason, format string, args ...any) Verdict {
	return Verdict{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Check looks at one pod that wants to run. others are the pods that have been admitted
// and have not ended. Neither may be changed.
type Check func(p *v1.Pod, others []*v1.Pod) Verdict

// Admitter asks its checks in order.
type Admitter struct{ checks []Check }

// New makes an Admitter of the checks, in the order in which they are to be asked. The
// reference kubelet's order, which decides the reason that a pod with two faults is
// rejected for, is: Pressure, Sysctls, allocation of devices and CPUs, PodOS,
// SupplementalGroups, Fit, AppArmor, PodLevelResources, DeclaredFeatures, Shutdown.
func New(checks ...Check) (*Admitter, error) {
	for i, c := range checks {
		if c == nil {
			return nil, fmt.Errorf("new admitter: check %d is nil", i)
		}
	}
	return &Admitter{checks}, nil
}

// Admit gives the first objection, or OK.
func (a *Admitter) Admit(p *v1.Pod, others []*v1.Pod) Verdict {
	for _, check := range a.checks {
		if v := check(p, others); !v.Admit {
			return v
		}
	}
	return OK
}
