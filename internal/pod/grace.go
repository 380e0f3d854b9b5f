package pod

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// MinStop is the least time that a container gets between SIGTERM and SIGKILL, also after a
// preStop hook that has used up the grace period.
const MinStop = 2 * time.Second

// GracePeriod is how long a pod may take to end, in seconds: the override if there is one,
// else what its deletion gives, else its spec. It is nil if none of them says.
func GracePeriod(p *v1.Pod, override *int64) *int64 {
	switch {
	case override != nil:
		return override
	case p.DeletionGracePeriodSeconds != nil:
		return p.DeletionGracePeriodSeconds
	}
	return p.Spec.TerminationGracePeriodSeconds
}
