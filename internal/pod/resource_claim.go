package pod

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// FromResourceClaim reports whether the container gets the extended resource from a resource claim.
func FromResourceClaim(p *v1.Pod, container string, resource v1.ResourceName) bool {
	status := p.Status.ExtendedResourceClaimStatus
	return status != nil && slices.ContainsFunc(status.RequestMappings, func(m v1.ContainerExtendedResourceRequest) bool {
		return m.ContainerName == container && m.ResourceName == string(resource)
	})
}
