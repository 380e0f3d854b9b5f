package runtime

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/pod"
)

// apply sets the cgroup v2 files of a container.
func (v *CgroupV2) apply(b *runtimeapi.LinuxContainerResources, p *v1.Pod, c *v1.Container) {
	if v.MemoryQOS == nil {
		// This removes the throttling of a container that was created while the feature was on.
		setUnified(b, "memory.high", "max")
		return
	}
	request := c.Resources.Requests.Memory().Value()
	switch {
	case request == 0 || !v.MemoryQOS.Reserve:
		setUnified(b, "memory.min", "0")
		setUnified(b, "memory.low", "0")
	case pod.QOS(p) == v1.PodQOSGuaranteed:
		setUnified(b, "memory.min", strconv.FormatInt(request, 10))
	default:
		setUnified(b, "memory.low", strconv.FormatInt(request, 10))
	}
	if high := v.MemoryQOS.high(p, c); high != 0 {
		setUnified(b, "memory.high", strconv.FormatInt(high, 10))
	}
}

// high returns memory.high, above which the kernel throttles a container: a page-aligned value
// between its request and its limit, or the node's allocatable memory where it has no limit. 0
// is none.
func (m *MemoryQOS) high(p *v1.Pod, c *v1.Container) int64 {
	request, limit := c.Resources.Requests.Memory().Value(), c.Resources.Limits.Memory().Value()
	if m.ThrottlingFactor == nil || request == limit && request != 0 {
		return 0
	}
	if limit == 0 {
		if resourcehelper.IsPodLevelResourcesSet(p) && !p.Spec.Resources.Limits.Memory().IsZero() {
			return 0 // the pod's cgroup is throttled instead
		}
		limit = m.Allocatable
	}
	return cgroup.MemoryHigh(request, limit, *m.ThrottlingFactor)
}
