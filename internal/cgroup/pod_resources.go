package cgroup

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// Resources are the limits of one cgroup in the kernel's units. A zero field leaves the kernel's
// value unchanged.
type Resources struct {
	CPUShares uint64
	// CPUQuota is in microseconds for each CPUPeriod; -1 removes the limit.
	CPUQuota  int64
	CPUPeriod uint64
	// Memory is in bytes. -1 removes the limit, here and in PIDs.
	Memory int64
	PIDs   int64
	// MemoryMin and MemoryLow protect memory from reclaim; above MemoryHigh the kernel throttles
	// the cgroup. Only cgroup v2 has these. -1 removes them.
	MemoryMin, MemoryLow, MemoryHigh int64
	// Hugepages maps page sizes to limits, both in bytes. The limit of other sizes is 0.
	Hugepages map[int64]int64
}

const (
	// MinShares and MaxShares are the kernel's range of cpu.shares.
	MinShares = 2
	MaxShares = 262144
	// minQuota is the smallest quota that the kernel accepts.
	minQuota = 1000
)

// Shares converts a CPU request to cpu.shares.
func Shares(milliCPU int64) uint64 {
	return uint64(min(max(milliCPU*1024/1000, MinShares), MaxShares))
}

// Quota converts a CPU limit to the CFS quota of a period, both in microseconds. It is 0 for no
// limit.
func Quota(milliCPU, period int64) int64 {
	if milliCPU == 0 {
		return 0
	}
	return max(milliCPU*period/1000, minQuota)
}

// sharesToWeight converts cpu.shares to cpu.weight of cgroup v2 by the linear formula that the
// reference kubelet uses for its own cgroups. runc uses another one for containers; the two need
// not agree, because the kernel compares weights of siblings only.
func sharesToWeight(shares uint64) uint64 {
	if shares == 0 {
		return 0
	}
	return 1 + (shares-MinShares)*9999/(MaxShares-MinShares)
}

// Limits are the node's settings that affect the limits of every pod.
type Limits struct {
	// CFSQuota enables the enforcement of CPU limits, CFSPeriod is its period.
	CFSQuota  bool
	CFSPeriod time.Duration
	// PodPIDs limits the number of processes of each pod where it is positive.
	PodPIDs int64
	// MemoryQOS is nil where the feature is off, and on cgroup v1.
	MemoryQOS *MemoryQOS
}

func (l Limits) period() int64 { return l.CFSPeriod.Microseconds() }

// PodResources returns the limits of p's cgroup. They apply to the sum of its containers and the
// overhead of its RuntimeClass. A resource is limited only if every container has a limit of it,
// or the pod has a pod-level one: one unlimited container makes the sum unlimited.
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
		l.MemoryQOS.apply(&r, p, requests, limits)
	}
	return r
}

// SandboxResources returns the pod's limits for CRI's sandbox configuration: the sums of the
// containers' requests and limits without the overhead, which CRI has a separate field for.
func (l Limits) SandboxResources(p *v1.Pod) Resources {
	opts := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	requests := resourcehelper.PodRequests(p, opts)
	limits := resourcehelper.PodLimits(p, opts)
	request, ok := requests[v1.ResourceCPU]
	if !ok {
		request = limits[v1.ResourceCPU]
	}
	return l.criResources(request, limits[v1.ResourceCPU], limits[v1.ResourceMemory])
}

// OverheadResources returns the overhead of the RuntimeClass for CRI's sandbox configuration,
// where it is both request and limit. It is zero for a pod without overhead.
func (l Limits) OverheadResources(p *v1.Pod) Resources {
	if p.Spec.Overhead == nil {
		return Resources{}
	}
	cpu := p.Spec.Overhead[v1.ResourceCPU]
	return l.criResources(cpu, cpu, p.Spec.Overhead[v1.ResourceMemory])
}

func (l Limits) criResources(cpuRequest, cpuLimit, memoryLimit resource.Quantity) Resources {
	r := Resources{CPUShares: Shares(cpuRequest.MilliValue()), Memory: memoryLimit.Value()}
	if l.CFSQuota {
		r.CPUPeriod = uint64(l.period())
		r.CPUQuota = Quota(cpuLimit.MilliValue(), l.period())
	}
	return r
}

// allLimited reports whether the pod, or each of its init and regular containers, has a limit of
// the resource.
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
