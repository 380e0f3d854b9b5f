package podstatus

import (
	v1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"
)

// allocated is what a container's requests were granted as.
func allocated(c *v1.Container) v1.ResourceList {
	if len(c.Resources.Requests) == 0 {
		return nil
	}
	return c.Resources.Requests.DeepCopy()
}

// resources sums up what the pod as a whole was given.
func resources(in Input, s *v1.PodStatus) {
	requests := helpers.PodRequests(in.Pod, helpers.PodResourcesOptions{ExcludeOverhead: true})
	limits := helpers.PodLimits(in.Pod, helpers.PodResourcesOptions{ExcludeOverhead: true})
	s.Resources = &v1.ResourceRequirements{}
	if len(requests) > 0 {
		s.AllocatedResources = requests
		s.Resources.Requests = requests
	}
	if len(limits) > 0 {
		s.Resources.Limits = limits
	}
}
