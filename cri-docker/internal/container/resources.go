package container

import (
	"maps"

	dockercontainer "github.com/moby/moby/api/types/container"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/host"
)

// resources are the limits that Docker has an API for.
func resources(r *runtimeapi.LinuxContainerResources) dockercontainer.Resources {
	d := dockercontainer.Resources{
		CPUShares: r.GetCpuShares(), CPUPeriod: r.GetCpuPeriod(), CPUQuota: r.GetCpuQuota(),
		CpusetCpus: r.GetCpusetCpus(), CpusetMems: r.GetCpusetMems(),
		Memory: r.GetMemoryLimitInBytes(), MemorySwap: r.GetMemorySwapLimitInBytes(),
	}
	if d.Memory != 0 && d.MemorySwap == 0 {
		d.MemorySwap = d.Memory // Docker would allow as much swap as memory
	}
	return d
}

// cgroupFiles are the limits that Docker has no API for.
func cgroupFiles(r *runtimeapi.LinuxContainerResources, l *host.Limits) map[string]string {
	pages := map[string]uint64{}
	for _, limit := range r.GetHugepageLimits() {
		pages[limit.GetPageSize()] = limit.GetLimit()
	}
	files := l.HugepageFiles(pages)
	maps.Copy(files, r.GetUnified())
	return files
}

// statusResources are the limits in force, as Docker has them, with the parts that it does not have.
func statusResources(h *dockercontainer.HostConfig, asked *runtimeapi.LinuxContainerResources) *runtimeapi.ContainerResources {
	if h == nil {
		return nil
	}
	r := &runtimeapi.LinuxContainerResources{
		CpuShares: h.CPUShares, CpuPeriod: h.CPUPeriod, CpuQuota: h.CPUQuota, CpusetCpus: h.CpusetCpus, CpusetMems: h.CpusetMems,
		MemoryLimitInBytes: h.Memory, OomScoreAdj: int64(h.OomScoreAdj),
		HugepageLimits: asked.GetHugepageLimits(), Unified: asked.GetUnified(),
	}
	if h.MemorySwap > 0 {
		r.MemorySwapLimitInBytes = h.MemorySwap
	}
	return &runtimeapi.ContainerResources{Linux: r}
}
