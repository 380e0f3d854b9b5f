package cgroup

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// Resources are the bounds of one group in the kernel's units. A zero field means that
// the group is given no bound of that kind.
type Resources struct {
	CPUShares uint64
	// CPUQuota is in microseconds for each CPUPeriod; -1 is "explicitly unlimited".
	CPUQuota  int64
	CPUPeriod uint64
	// Memory is in bytes; -1 is "explicitly unlimited", as for PIDs.
	Memory int64
	PIDs   int64
	// MemoryMin and MemoryLow are protected from being reclaimed, at MemoryHigh the group is
	// slowed down: cgroup v2 alone has these. -1 takes them back.
	MemoryMin, MemoryLow, MemoryHigh int64
	// Hugepages are bytes for each page size in bytes. Sizes that are left out are
	// bounded to nothing.
	Hugepages map[int64]int64
}

const (
	// MinShares and MaxShares are the kernel's bounds of cpu.shares.
	MinShares = 2
	MaxShares = 262144
	// minQuota is the smallest quota the kernel takes.
	minQuota = 1000
)

// Shares is the weight of a CPU request.
func Shares(milliCPU int64) uint64 {
	return uint64(min(max(milliCPU*1024/1000, MinShares), MaxShares))
}

// Quota is the run time that a CPU limit allows in each period, both in microseconds.
// No limit gives 0.
func Quota(milliCPU, period int64) int64 {
	if milliCPU == 0 {
		return 0
	}
	return max(milliCPU*period/1000, minQuota)
}

// weight turns cpu.shares into v2's cpu.weight by the linear map that the reference
// kubelet uses for the groups that it owns. (runc maps containers' shares by another
// curve; the two need not agree, as weights only compare siblings.)
func weight(shares uint64) uint64 {
	if shares == 0 {
		return 0
	}
	return 1 + (shares-MinShares)*9999/(MaxShares-MinShares)
}

// Limits are the node-wide settings that enter a pod's bounds.
type Limits struct {
	// CFSQuota says whether CPU limits are enforced at all, and CFSPeriod over what time.
	CFSQuota  bool
	CFSPeriod time.Duration
	// PodPIDs bounds the processes of each pod where it is positive.
	PodPIDs int64
	// MemoryQOS is nil where the feature is off, and on cgroup v1.
	MemoryQOS *MemoryQOS
}

func (l Limits) period() int64 { return l.CFSPeriod.Microseconds() }

// PodResources are the bounds of p's own group, which hold for all its containers
// together, and for the overhead of its runtime class. A resource is bounded only if
// every container declares a limit of it, or the pod as a whole does: one unlimited
// container makes the sum unlimited.
func (l Limits) PodResources(p *v1.Pod) Resources {
	requests := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
	limits := resourcehelper.PodLimits(p, resourcehelper.PodResourcesOptions{})
	r := Resources{
		CPUShares: MinShares,
		PIDs:      max(l.PodPIDs, 0),
		Hugepages: hugepages(requests),
	}
	class := pod.QOS(p)
	if class == v1.PodQOSBestEffort {
		return r
	}
	r.CPUShares = Shares(requests.Cpu().MilliValue())
	if class == v1.PodQOSGuaranteed || allLimited(p, v1.ResourceCPU) {
		r.CPUPeriod = uint64(l.period())
		r.CPUQuota = -1
		if l.CFSQuota {
			r.CPUQuota = Quota(limits.Cpu().MilliValue(), l.period())
		}
	}
	if class == v1.PodQOSGuaranteed || allLimited(p, v1.ResourceMemory) {
		r.Memory = limits.Memory().Value()
	}
	if l.MemoryQOS != nil {
		l.MemoryQOS.bound(&r, p, requests, limits)
	}
	return r
}

// SandboxResources are the pod's bounds as CRI is told of them with the sandbox: the sums
// of what is declared, without the overhead, which CRI carries separately.
func (l Limits) SandboxResources(p *v1.Pod) Resources {
	opts := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	requests := resourcehelper.PodRequests(p, opts)
	limits := resourcehelper.PodLimits(p, opts)
	request, ok := requests[v1.ResourceCPU]
	if !ok {
		request = limits[v1.ResourceCPU]
	}
	return l.linux(request, limits[v1.ResourceCPU], limits[v1.ResourceMemory])
}

// OverheadResources are the runtime class's overhead as CRI is told of it: a request and
// a limit at once. The result is zero where there is none.
func (l Limits) OverheadResources(p *v1.Pod) Resources {
	if p.Spec.Overhead == nil {
		return Resources{}
	}
	cpu := p.Spec.Overhead[v1.ResourceCPU]
	return l.linux(cpu, cpu, p.Spec.Overhead[v1.ResourceMemory])
}

func (l Limits) linux(cpuRequest, cpuLimit, memoryLimit resource.Quantity) Resources {
	r := Resources{CPUShares: Shares(cpuRequest.MilliValue()), Memory: memoryLimit.Value()}
	if l.CFSQuota {
		r.CPUPeriod = uint64(l.period())
		r.CPUQuota = Quota(cpuLimit.MilliValue(), l.period())
	}
	return r
}

// allLimited reports whether the pod, or each of its init and main containers, has a
// limit of the resource.
func allLimited(p *v1.Pod, resource v1.ResourceName) bool {
	has := func(limits v1.ResourceList) bool {
		limit, ok := limits[resource]
		return ok && !limit.IsZero()
	}
	if resourcehelper.IsPodLevelResourcesSet(p) && has(p.Spec.Resources.Limits) {
		return true
	}
	for c, kind := range pod.Containers(p) {
		if kind != pod.Ephemeral && !has(c.Resources.Limits) {
			return false
		}
	}
	return true
}
