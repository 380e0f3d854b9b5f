package runtime

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cgroup"
)

// ContainerResources returns the resources of one container as CRI sets them.
func (r *Runtime) ContainerResources(p *v1.Pod, c *v1.Container) *runtimeapi.LinuxContainerResources {
	limits := effectiveLimits(p, c)
	cpuLimit := limits[v1.ResourceCPU]
	cpuRequest, ok := c.Resources.Requests[v1.ResourceCPU]
	if !ok {
		cpuRequest = cpuLimit
	}
	bounds := r.bounds(cpuRequest, cpuLimit, limits[v1.ResourceMemory])
	bounds.OomScoreAdj = oomScoreAdj(p, c, r.cfg.MemoryCapacity)
	bounds.HugepageLimits = r.hugePageLimits(p, c)
	r.limitSwap(bounds, p, c)
	if r.cfg.CgroupV2 != nil {
		r.cfg.CgroupV2.apply(bounds, p, c)
	}
	if r.deps.Cpuset != nil {
		cpuset := r.deps.Cpuset(p, c)
		bounds.CpusetCpus, bounds.CpusetMems = cpuset.CPUs, cpuset.Mems
		r.liftQuota(bounds, cpuset.Exclusive)
	}
	return bounds
}

// liftQuota removes the CPU quota of a container that has its CPUs exclusively.
func (r *Runtime) liftQuota(bounds *runtimeapi.LinuxContainerResources, alone bool) {
	if alone && r.cfg.CPUQuota {
		bounds.CpuQuota = -1
	}
}

// effectiveLimits returns a container's CPU and memory limits: its own, or where it has none the
// pod-level ones.
func effectiveLimits(p *v1.Pod, c *v1.Container) v1.ResourceList {
	limits := v1.ResourceList{}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		limit := c.Resources.Limits[name]
		if limit.IsZero() && resourcehelper.IsPodLevelResourcesSet(p) {
			limit = p.Spec.Resources.Limits[name]
		}
		limits[name] = limit
	}
	return limits
}

// sandboxResources returns the sums of the pod, for runtimes whose sandbox is a virtual machine.
func (r *Runtime) sandboxResources(p *v1.Pod) *runtimeapi.LinuxContainerResources {
	opts := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	requests, limits := resourcehelper.PodRequests(p, opts), resourcehelper.PodLimits(p, opts)
	cpuRequest, ok := requests[v1.ResourceCPU]
	if !ok {
		cpuRequest = limits[v1.ResourceCPU]
	}
	bounds := r.bounds(cpuRequest, limits[v1.ResourceCPU], limits[v1.ResourceMemory])
	r.liftQuota(bounds, r.deps.ExclusiveCPUs != nil && r.deps.ExclusiveCPUs(p))
	return bounds
}

// overhead returns the pod's overhead as both request and limit.
func (r *Runtime) overhead(p *v1.Pod) *runtimeapi.LinuxContainerResources {
	if p.Spec.Overhead == nil {
		return &runtimeapi.LinuxContainerResources{}
	}
	cpu := p.Spec.Overhead[v1.ResourceCPU]
	return r.bounds(cpu, cpu, p.Spec.Overhead[v1.ResourceMemory])
}

// bounds converts quantities; a zero limit is none.
func (r *Runtime) bounds(cpuRequest, cpuLimit, memoryLimit resource.Quantity) *runtimeapi.LinuxContainerResources {
	b := &runtimeapi.LinuxContainerResources{
		CpuShares:          int64(cgroup.Shares(cpuRequest.MilliValue())),
		MemoryLimitInBytes: memoryLimit.Value(),
	}
	if r.cfg.CPUQuota {
		b.CpuPeriod = r.cfg.CPUPeriod.Microseconds()
		b.CpuQuota = cgroup.Quota(cpuLimit.MilliValue(), b.CpuPeriod)
	}
	if r.cfg.CgroupV2 != nil && !r.cfg.CgroupV2.SingleProcessOOMKill {
		setUnified(b, "memory.oom.group", "1")
	}
	return b
}

// setUnified has the runtime write one cgroup v2 file.
func setUnified(b *runtimeapi.LinuxContainerResources, file, value string) {
	if b.Unified == nil {
		b.Unified = map[string]string{}
	}
	b.Unified[file] = value
}
