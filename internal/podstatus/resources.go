package podstatus

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// allocatedRequests returns the allocated requests of a container.
func allocatedRequests(c *v1.Container) v1.ResourceList {
	if len(c.Resources.Requests) == 0 {
		return nil
	}
	return c.Resources.Requests.DeepCopy()
}

// actualResources returns the resources of a container. Those of a running container are what the
// runtime reports, and where it reports nothing those last set.
func actualResources(in Input, c *v1.Container, latest *pod.Container) *v1.ResourceRequirements {
	r := c.Resources.DeepCopy()
	r.Claims = nil
	if latest.State != pod.Running {
		return r
	}
	var reported pod.ContainerResources
	if latest.Resources != nil {
		reported = *latest.Resources
	}
	if in.Actual != nil {
		if have, known := in.Actual.Containers[c.Name]; known {
			fill(&reported.CPURequest, have.Requests, v1.ResourceCPU)
			fill(&reported.CPULimit, have.Limits, v1.ResourceCPU)
			fill(&reported.MemoryRequest, have.Requests, v1.ResourceMemory)
			fill(&reported.MemoryLimit, have.Limits, v1.ResourceMemory)
		}
	}
	if r.Limits != nil {
		overlay(r.Limits, v1.ResourceCPU, reported.CPULimit, minMilliLimit)
		overlay(r.Limits, v1.ResourceMemory, reported.MemoryLimit, 0)
	}
	if r.Requests != nil {
		overlay(r.Requests, v1.ResourceCPU, reported.CPURequest, minMilliRequest)
		overlay(r.Requests, v1.ResourceMemory, reported.MemoryRequest, 0)
	}
	return r
}

// The kernel does not distinguish CPU amounts below these.
const (
	minMilliLimit   = 10
	minMilliRequest = 2
)

// fill sets an amount that the runtime does not report.
func fill(reported **resource.Quantity, have v1.ResourceList, name v1.ResourceName) {
	if amount, ok := have[name]; ok && *reported == nil && !amount.IsZero() {
		*reported = &amount
	}
}

// overlay replaces an allocated amount by the reported one, unless both are so small that the kernel
// does not distinguish them.
func overlay(list v1.ResourceList, name v1.ResourceName, reported *resource.Quantity, least int64) {
	allocated := list[name]
	if reported == nil || allocated.MilliValue() <= least && reported.MilliValue() <= least {
		return
	}
	if allocated.Cmp(*reported) != 0 { // equal amounts keep the user's notation
		list[name] = reported.DeepCopy()
	}
}

// resourceHealth returns the health of a container's devices and claims. A stopped container keeps
// the last one.
func (in Input) resourceHealth(container string) []v1.ResourceStatus {
	var now []v1.ResourceStatus
	if in.ResourceHealth != nil {
		now = in.ResourceHealth(container)
	}
	if before := pod.FindStatus(&in.Previous, container); len(now) == 0 && in.Stopped && before != nil {
		return before.AllocatedResourcesStatus
	}
	return now
}

// resources sets the pod-level resources of the status.
func resources(in Input, s *v1.PodStatus) {
	opts := helpers.PodResourcesOptions{ExcludeOverhead: true}
	if requests := helpers.PodRequests(in.Pod, opts); len(requests) > 0 {
		s.AllocatedResources = requests
	}
	actual := in.Pod
	if in.Actual != nil && in.Actual.ResizeInProgress(in.Pod, in.Observed) {
		actual, _ = in.Actual.Apply(in.Pod)
	}
	requests, limits := helpers.PodRequests(actual, opts), helpers.PodLimits(actual, opts)
	s.Resources = &v1.ResourceRequirements{}
	if len(requests) > 0 {
		s.Resources.Requests = requests
	}
	if len(limits) > 0 {
		s.Resources.Limits = limits
	}
}
