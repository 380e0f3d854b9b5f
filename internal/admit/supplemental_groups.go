package admit

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// SupplementalGroups rejects pods that ask for a strict group list where the runtime
// would add groups from the image without a word.
func SupplementalGroups(supported func() bool) Check {
	return func(p *v1.Pod, _ []*v1.Pod) *pod.Rejection {
		sc := p.Spec.SecurityContext
		if sc == nil || sc.SupplementalGroupsPolicy == nil ||
			*sc.SupplementalGroupsPolicy != v1.SupplementalGroupsPolicyStrict || supported() {
			return nil
		}
		return pod.Reject("SupplementalGroupsPolicyNotSupported", "SupplementalGroupsPolicy=%s is not supported in this node", v1.SupplementalGroupsPolicyStrict)
	}
}
