package podstatus

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// allocated is what a container's requests were granted as.
func allocated(c *v1.Container) v1.ResourceList {
	if len(c.Resources.Requests) == 0 {
		return nil
	}
	return c.Resources.Requests.DeepCopy()
}

// inForce is what a container has. Of one that runs, the runtime knows the limits and the
// weight, and what was last done the rest.
func inForce(in Input, c *v1.Container, latest *pod.Container) *v1.ResourceRequirements {
	r := c.Resources.DeepCopy()
	r.Claims = nil
	if latest.State != pod.Running {
		return r
	}
	var told pod.ContainerResources
	if latest.Resources != nil {
		told = *latest.Resources
	}
	if in.Actual != nil {
		if have, known := in.Actual.Containers[c.Name]; known {
			fill(&told.CPURequest, have.Requests, v1.ResourceCPU)
			fill(&told.CPULimit, have.Limits, v1.ResourceCPU)
			fill(&told.MemoryRequest, have.Requests, v1.ResourceMemory)
			fill(&told.MemoryLimit, have.Limits, v1.ResourceMemory)
		}
	}
	if r.Limits != nil {
		overlay(r.Limits, v1.ResourceCPU, told.CPULimit, minMilliLimit)
		overlay(r.Limits, v1.ResourceMemory, told.MemoryLimit, 0)
	}
	if r.Requests != nil {
		overlay(r.Requests, v1.ResourceCPU, told.CPURequest, minMilliRequest)
		overlay(r.Requests, v1.ResourceMemory, told.MemoryRequest, 0)
	}
	return r
}

// Below these the kernel knows no difference.
const (
	minMilliLimit   = 10
	minMilliRequest = 2
)

// fill puts in what the runtime does not tell.
func fill(told **resource.Quantity, have v1.ResourceList, name v1.ResourceName) {
	if amount, ok := have[name]; ok && *told == nil && !amount.IsZero() {
		*told = &amount
	}
}

// overlay puts what is in force in the place of what was given, unless both are so small that
// the kernel cannot tell them apart.
func overlay(list v1.ResourceList, name v1.ResourceName, told *resource.Quantity, least int64) {
	given := list[name]
	if told == nil || given.MilliValue() <= least && told.MilliValue() <= least {
		return
	}
	if given.Cmp(*told) != 0 { // the same amount stays as the user wrote it
		list[name] = told.DeepCopy()
	}
}

// given says how the devices and claims of a container are doing. One that ended is shown
// with what it had.
func (in Input) given(container string) []v1.ResourceStatus {
	var now []v1.ResourceStatus
	if in.Resources != nil {
		now = in.Resources(container)
	}
	if before := pod.FindStatus(&in.Previous, container); len(now) == 0 && in.Stopped && before != nil {
		return before.AllocatedResourcesStatus
	}
	return now
}

// resources sums up what the pod as a whole was given.
func resources(in Input, s *v1.PodStatus) {
	opts := helpers.PodResourcesOptions{ExcludeOverhead: true}
	if given := helpers.PodRequests(in.Pod, opts); len(given) > 0 {
		s.AllocatedResources = given
	}
	has := in.Pod
	if in.Actual != nil && in.Actual.Behind(in.Pod, in.Observed) {
		has, _ = in.Actual.Apply(in.Pod)
	}
	requests, limits := helpers.PodRequests(has, opts), helpers.PodLimits(has, opts)
	s.Resources = &v1.ResourceRequirements{}
	if len(requests) > 0 {
		s.Resources.Requests = requests
	}
	if len(limits) > 0 {
		s.Resources.Limits = limits
	}
}
