package podsync

import (
	"context"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
)

// MemoryUsage reads the memory usage of a pod from its cgroup, and of its containers from the runtime.
type MemoryUsage struct {
	Pod     func(*v1.Pod) (uint64, error)
	Runtime interface {
		ListContainerStats(context.Context, *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error)
	}
}

// Memory returns the memory usage of the pod and of each container.
func (m MemoryUsage) Memory(ctx context.Context, p *v1.Pod, observed *pod.Observed) (whole uint64, each map[string]uint64, err error) {
	if whole, err = m.Pod(p); err != nil {
		return 0, nil, err
	}
	sandbox := observed.Sandbox()
	if sandbox == nil {
		return whole, nil, nil
	}
	stats, err := m.Runtime.ListContainerStats(ctx, &runtimeapi.ContainerStatsFilter{PodSandboxId: sandbox.ID})
	if err != nil {
		return 0, nil, err
	}
	each = map[string]uint64{}
	for _, s := range stats {
		if used := s.GetMemory().GetUsageBytes(); used != nil {
			each[s.GetAttributes().GetMetadata().GetName()] = used.Value
		}
	}
	return whole, each, nil
}
