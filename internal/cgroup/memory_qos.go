package cgroup

import (
	"math"
	"os"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// MemoryQOS configures memory protection and throttling on cgroup v2.
type MemoryQOS struct {
	// Tiered protects requested memory from reclaim: that of guaranteed pods always
	// (memory.min), that of burstable pods while other memory can be reclaimed (memory.low).
	Tiered bool
	// ThrottlingFactor is where between request and limit the kernel begins to throttle; nil
	// throttles nothing.
	ThrottlingFactor *float64
}

// apply adds protection and throttling to the limits of p's cgroup. Containers are throttled in
// their own cgroups, unless the pod has pod-level limits.
func (m *MemoryQOS) apply(r *Resources, p *v1.Pod, requests, limits v1.ResourceList) {
	request := requests.Memory().Value()
	switch {
	case !m.Tiered:
	case pod.QOS(p) == v1.PodQOSGuaranteed:
		r.MemoryMin = request
	default:
		r.MemoryLow = request
	}
	if m.ThrottlingFactor != nil && resourcehelper.IsPodLevelResourcesSet(p) && allLimited(p, v1.ResourceMemory) {
		r.MemoryHigh = MemoryHigh(request, limits.Memory().Value(), *m.ThrottlingFactor)
	}
}

// MemoryHigh returns memory.high for a memory request and limit, rounded down to a page. It is 0,
// for no throttling, where that does not lie between the two.
func MemoryHigh(request, limit int64, factor float64) int64 {
	if limit == 0 || request == limit {
		return 0
	}
	page := int64(os.Getpagesize())
	point := float64(request) + float64(limit-request)*factor
	high := int64(math.Floor(point)/float64(page)) * page
	if high <= request {
		return 0
	}
	return high
}
