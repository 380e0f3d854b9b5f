package podsync

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource"
	"swiftlet/internal/resource/cpu"
	"swiftlet/internal/runtime"
)

// Managers are the Resources of the node's resource managers.
type Managers struct {
	*resource.Managers
	// ReportHealth is the feature gate ResourceHealthStatus.
	ReportHealth bool
}

// Prepare waits until exclusive CPUs and memory are on disk, allocates devices and prepares claims.
func (m Managers) Prepare(ctx context.Context, p *v1.Pod, observed *pod.Observed) error {
	if err := m.Written(ctx); err != nil {
		return fmt.Errorf("write allocated resources: %w", err)
	}
	if err := m.Devices.Prepare(ctx, p, observed); err != nil {
		return err
	}
	return m.Claims.Prepare(ctx, p, observed)
}

// ContainerOptions returns what a container needs for its devices and claims.
func (m Managers) ContainerOptions(ctx context.Context, p *v1.Pod, c *v1.Container) (runtime.ContainerOptions, error) {
	devices, err := m.Devices.Options(ctx, p, c)
	if err != nil {
		return runtime.ContainerOptions{}, err
	}
	claimed, err := m.Claims.CDIDevices(p, c)
	options := runtime.ContainerOptions{
		Mounts: devices.Mounts, Devices: devices.Devices, CDIDevices: append(devices.CDIDevices, claimed...), Annotations: devices.Annotations,
	}
	for _, e := range devices.Envs {
		options.Envs = append(options.Envs, runtime.EnvVar{Name: e.Key, Value: string(e.Value)})
	}
	return options, err
}

// Release releases the resources of a pod whose containers have all stopped.
func (m Managers) Release(ctx context.Context, ref pod.Ref) error {
	m.Aligner.Release(ref.UID)
	if err := m.Written(ctx); err != nil { // the pod has ended nevertheless
		m.Log.Error("resource managers: write state file after release failed", ref.Attr(), "err", err)
	}
	return m.Claims.Release(ctx, ref.UID)
}

// Health returns the health of a container's devices and claims.
func (m Managers) Health(p *v1.Pod, container string) []v1.ResourceStatus {
	if !m.ReportHealth {
		return nil
	}
	return append(m.Devices.Health(p.UID, container), m.Claims.Health(p, container)...)
}

// CpusetFrom returns a function that returns the cpuset of a container.
func CpusetFrom(e *resource.Exclusive) func(*v1.Pod, *v1.Container) runtime.Cpuset {
	return func(p *v1.Pod, c *v1.Container) runtime.Cpuset {
		return runtime.Cpuset{CPUs: e.CPUs.CPUSet(p.UID, c.Name).String(), Mems: e.Memory.NUMANodes(p.UID, c.Name), Exclusive: e.CPUs.HasExclusiveCPUs(p, c)}
	}
}

// PinningTo pins running containers to their CPUs. It does nothing if all CPUs are shared.
func PinningTo(cpus *cpu.CPUs, runtime interface {
	UpdateContainerResources(ctx context.Context, id string, r *runtimeapi.LinuxContainerResources) error
}) Pinning {
	if !cpus.SetsAffinity() {
		return Pinning{}
	}
	return Pinning{
		CPUs: func(uid types.UID, container string) string { return cpus.CPUSet(uid, container).String() },
		Pin: func(ctx context.Context, id, set string) error {
			return runtime.UpdateContainerResources(ctx, id, &runtimeapi.LinuxContainerResources{CpusetCpus: set})
		},
	}
}
