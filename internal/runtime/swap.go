package runtime

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
)

// limitSwap limits a container's swap. cgroup v1 counts memory and swap together, so a limit
// equal to the memory limit leaves no swap; cgroup v2 counts swap alone.
func (r *Runtime) limitSwap(b *runtimeapi.LinuxContainerResources, p *v1.Pod, c *v1.Container) {
	switch {
	case !r.cfg.Swap.Controller:
	case r.cfg.CgroupV2 == nil:
		b.MemorySwapLimitInBytes = b.MemoryLimitInBytes
	default:
		setUnified(b, "memory.swap.max", strconv.FormatInt(r.swapShare(p, c), 10))
	}
}

// MayUseSwap reports whether the container may use swap.
func (r *Runtime) MayUseSwap(p *v1.Pod, c *v1.Container) bool {
	return r.cfg.Swap.Controller && r.cfg.CgroupV2 != nil && r.swapShare(p, c) > 0
}

// swapShare returns the share of the node's swap for a burstable container: the same as its
// request is of the node's memory. Guaranteed and critical pods must not depend on swap.
func (r *Runtime) swapShare(p *v1.Pod, c *v1.Container) int64 {
	request := c.Resources.Requests.Memory()
	switch {
	case !r.cfg.Swap.Limited,
		pod.IsCritical(p),
		pod.QOS(p) != v1.PodQOSBurstable,
		request.IsZero() && c.Resources.Limits.Memory().IsZero(),
		request.Cmp(*c.Resources.Limits.Memory()) == 0,
		request.Value() > r.cfg.MemoryCapacity:
		return 0
	}
	return int64(float64(request.Value()) / float64(r.cfg.MemoryCapacity) * float64(r.cfg.Swap.Capacity))
}
