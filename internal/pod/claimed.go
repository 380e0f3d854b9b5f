package pod

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Claimed reports whether the container has the extended resource from a resource claim.
func Claimed(p *v1.Pod, container string, resource v1.ResourceName) bool {
	status := p.Status.ExtendedResourceClaimStatus
	return status != nil && slices.ContainsFunc(status.RequestMappings, func(m v1.ContainerExtendedResourceRequest) bool {
		return m.ContainerName == container && m.ResourceName == string(resource)
	})
}
