package pod

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// QOS classes a pod by how far its requests and limits bind it. The class is fixed when
// the pod is created, so a class the API server has already written down wins.
func QOS(p *v1.Pod) v1.PodQOSClass {
	if p.Status.QOSClass != "" {
		return p.Status.QOSClass
	}
	return ComputeQOS(p)
}

// Bound: the container by itself would be Guaranteed.
func Bound(c *v1.Container) bool {
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
		if request.IsZero() || !request.Equal(limit) {
			return false
		}
	}
	return true
}

// ComputeQOS derives the class from the spec alone.
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

// classOf: nothing asked is BestEffort; cpu and memory limited everywhere, with requests
// equal to limits in sum, is Guaranteed; all between is Burstable.
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

// addQOS adds the positive amounts that decide the class and reports how many there were.
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
