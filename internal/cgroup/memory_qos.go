package cgroup

import (
	"math"
	"os"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// MemoryQOS is the finer control of memory that cgroup v2 has.
type MemoryQOS struct {
	// Tiered protects requested memory from being reclaimed: guaranteed pods' always,
	// burstable pods' as long as there is other memory to reclaim.
	Tiered bool
	// ThrottlingFactor places the point between request and limit at which a pod is slowed
	// down; nil slows none down.
	ThrottlingFactor *float64
}

// bound adds to the bounds of p's own group. Containers are slowed down in their own groups,
// unless the pod is bounded as a whole.
func (m *MemoryQOS) bound(r *Resources, p *v1.Pod, requests, limits v1.ResourceList) {
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

// MemoryHigh is where a group that requests so much memory of its limit begins to be slowed
// down: at the start of a page. It is 0, for nowhere, if there is nothing between the two.
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
