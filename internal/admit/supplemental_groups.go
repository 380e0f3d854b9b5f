package admit

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// SupplementalGroups rejects pods with the Strict policy if the runtime does not support it: it
// would add the groups of the image.
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
