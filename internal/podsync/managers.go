package podsync

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource"
	"swiftlet/internal/resource/cpu"
	"swiftlet/internal/runtime"
)

// Managers are the Resources that the node's resource managers give to pods.
type Managers struct {
	*resource.Managers
	// ReportHealth is the feature gate ResourceHealthStatus.
	ReportHealth bool
}

// Prepare makes devices and claims ready.
func (m Managers) Prepare(ctx context.Context, p *v1.Pod, observed *pod.Observed) error {
	if err := m.Devices.Prepare(ctx, p, observed); err != nil {
		return err
	}
	return m.Claims.Prepare(ctx, p, observed)
}

// Extras are what a container needs to use its devices.
func (m Managers) Extras(ctx context.Context, p *v1.Pod, c *v1.Container) (runtime.Extras, error) {
	options, err := m.Devices.Options(ctx, p, c)
	if err != nil {
		return runtime.Extras{}, err
	}
	claimed, err := m.Claims.CDIDevices(p, c)
	extras := runtime.Extras{
		Mounts: options.Mounts, Devices: options.Devices, CDIDevices: append(options.CDIDevices, claimed...), Annotations: options.Annotations,
	}
	for _, e := range options.Envs {
		extras.Envs = append(extras.Envs, runtime.EnvVar{Name: e.Key, Value: string(e.Value)})
	}
	return extras, err
}

// Release takes everything back from a pod of which nothing runs any more.
func (m Managers) Release(ctx context.Context, ref pod.Ref) error {
	m.Aligner.Release(ref.UID)
	return m.Claims.Release(ctx, ref.UID)
}

// Health is that of a container's devices.
func (m Managers) Health(p *v1.Pod, container string) []v1.ResourceStatus {
	if !m.ReportHealth {
		return nil
	}
	return append(m.Devices.Health(p.UID, container), m.Claims.Health(p, container)...)
}

// PlaceOn returns the part of the machine that a container runs on.
func PlaceOn(e *resource.Exclusive) func(*v1.Pod, *v1.Container) runtime.Place {
	return func(p *v1.Pod, c *v1.Container) runtime.Place {
		return runtime.Place{CPUs: e.CPUs.CPUSet(p.UID, c.Name).String(), Memory: e.Memory.NUMANodes(p.UID, c.Name), Alone: e.CPUs.HasExclusiveCPUs(p, c)}
	}
}

// PinningTo keeps running containers on their CPUs. It does nothing where all CPUs are shared.
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
