package pod

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// QOS returns the QoS class of a pod. The class does not change after the pod is created, so that of
// the status wins.
func QOS(p *v1.Pod) v1.PodQOSClass {
	if p.Status.QOSClass != "" {
		return p.Status.QOSClass
	}
	return ComputeQOS(p)
}

// GuaranteedContainer reports whether the container alone would be Guaranteed.
func GuaranteedContainer(c *v1.Container) bool {
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
		if request.IsZero() || !request.Equal(limit) {
			return false
		}
	}
	return true
}

// ComputeQOS derives the QoS class from the spec.
func ComputeQOS(p *v1.Pod) v1.PodQOSClass {
	if r := p.Spec.Resources; r != nil && (len(r.Requests) > 0 || len(r.Limits) > 0) {
		return classOf([]v1.ResourceRequirements{*r})
	}
	var all []v1.ResourceRequirements
	for c, kind := range Containers(p) {
		if kind != Ephemeral {
			all = append(all, c.Resources)
		}
	}
	return classOf(all)
}

// classOf returns BestEffort without requests and limits, Guaranteed if all have CPU and memory limits
// and the sums of requests and limits are equal, and Burstable otherwise.
func classOf(all []v1.ResourceRequirements) v1.PodQOSClass {
	requests, limits := v1.ResourceList{}, v1.ResourceList{}
	guaranteed := true
	for _, r := range all {
		addQOS(requests, r.Requests)
		if addQOS(limits, r.Limits) != 2 {
			guaranteed = false
		}
	}
	if len(requests) == 0 && len(limits) == 0 {
		return v1.PodQOSBestEffort
	}
	if guaranteed && len(limits) == len(requests) {
		for name, request := range requests {
			if limit, ok := limits[name]; !ok || limit.Cmp(request) != 0 {
				return v1.PodQOSBurstable
			}
		}
		return v1.PodQOSGuaranteed
	}
	return v1.PodQOSBurstable
}

// addQOS adds the positive CPU and memory amounts and returns how many there were.
func addQOS(sum, amounts v1.ResourceList) (counted int) {
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		amount, ok := amounts[name]
		if !ok || amount.Cmp(resource.Quantity{}) <= 0 {
			continue
		}
		counted++
		total := sum[name]
		total.Add(amount)
		sum[name] = total
	}
	return counted
}
