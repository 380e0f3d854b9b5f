package podstatus

import (
	v1 "k8s.io/api/core/v1"
)

// isRejected reports whether the node did not admit the pod. A rejected pod is the only one
// that fails without a status of its containers; an agent that starts later knows it by that.
func isRejected(in Input) bool {
	if in.Failure != nil {
		return in.Failure.Rejected
	}
	p := &in.Previous
	return p.Phase == v1.PodFailed && len(in.Observed.Live()) == 0 &&
		len(p.InitContainerStatuses)+len(p.ContainerStatuses)+len(p.EphemeralContainerStatuses) == 0
}

// rejected is the status of a pod that was not admitted. It has no container statuses: an
// exit code that no container had would mislead whoever acts on it, such as the
// podFailurePolicy of a Job. For the same reason it has no addresses and no conditions.
func rejected(in Input) v1.PodStatus {
	s := basis(in)
	s.Phase, s.Reason, s.Message = v1.PodFailed, in.Previous.Reason, in.Previous.Message
	if in.Failure != nil {
		s.Reason, s.Message = in.Failure.Reason, in.Failure.Message
	}
	return s
}
