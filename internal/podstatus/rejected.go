package podstatus

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/clip"
)

// isRejected reports whether the node did not admit the pod. Only a rejected pod fails without
// container statuses; by that a restarted kubelet recognizes it.
func isRejected(in Input) bool {
	if in.Failure != nil {
		return in.Failure.Rejected
	}
	p := &in.Previous
	return p.Phase == v1.PodFailed && len(in.Observed.Live()) == 0 &&
		len(p.InitContainerStatuses)+len(p.ContainerStatuses)+len(p.EphemeralContainerStatuses) == 0
}

// rejected returns the status of a pod that was not admitted. It has no container statuses, because
// a made-up exit code would mislead controllers, for example the podFailurePolicy of a Job. For the
// same reason it has no IPs and no conditions.
func rejected(in Input) v1.PodStatus {
	s := base(in)
	s.Phase, s.Reason, s.Message = v1.PodFailed, in.Previous.Reason, in.Previous.Message
	if in.Failure != nil {
		s.Reason, s.Message = in.Failure.Reason, clip.Text(in.Failure.Message, maxPodMessage)
	}
	return s
}
