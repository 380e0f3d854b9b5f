package runtime

import (
	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

const (
	oomGuaranteed = -997 // killed after all other pods, before the system's daemons
	oomBestEffort = 1000
)

// oomScoreAdj returns a container's oom_score_adj. Of two burstable containers, the one that
// requests more of the node's memory has the lower score, so that a container which stays
// within its request is killed after one which does not.
func oomScoreAdj(p *v1.Pod, c *v1.Container, capacity int64) int64 {
	if p.Spec.PriorityClassName == "system-node-critical" && pod.IsCritical(p) {
		return oomGuaranteed
	}
	switch pod.QOS(p) {
	case v1.PodQOSGuaranteed:
		return oomGuaranteed
	case v1.PodQOSBestEffort:
		return oomBestEffort
	}
	spare := spareMemory(p)
	request := c.Resources.Requests.Memory().Value()
	// A sidecar serves the main containers, so it must not be killed before them.
	if kind, _ := pod.KindOf(p, c.Name); kind == pod.Init && pod.IsSidecar(c) {
		request = max(request, leastMainRequest(p))
	}
	score := 1000 - 1000*(request+spare)/capacity
	return min(max(score, 1000+oomGuaranteed), oomBestEffort-1)
}

// spareMemory returns each container's share of the memory that the pod-level request has
// beyond the sum of its containers'.
func spareMemory(p *v1.Pod) int64 {
	if !resourcehelper.IsPodLevelRequestsSet(p) {
		return 0
	}
	sum := resourcehelper.AggregateContainerRequests(p, resourcehelper.PodResourcesOptions{})
	count := int64(len(p.Spec.Containers) + len(p.Spec.InitContainers))
	return max(p.Spec.Resources.Requests.Memory().Value()-sum.Memory().Value(), 0) / max(count, 1)
}

func leastMainRequest(p *v1.Pod) int64 {
	if len(p.Spec.Containers) == 0 {
		return 0
	}
	least := p.Spec.Containers[0].Resources.Requests.Memory().Value()
	for _, c := range p.Spec.Containers[1:] {
		least = min(least, c.Resources.Requests.Memory().Value())
	}
	return least
}
