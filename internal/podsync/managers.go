package podsync

import (
	"context"
	"log/slog"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/resource/cpu"
	"swiftlet/internal/resource/device"
	"swiftlet/internal/resource/dra"
	memorymanager "swiftlet/internal/resource/memory"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/runtime"
)

// Managers are the resource managers of the node. They are the Resources of pods.
type Managers struct {
	Devices *device.Manager
	Claims  *dra.Manager
	CPUs    *cpu.CPUs
	Memory  *memorymanager.Memory
	Aligner *numa.Aligner
	// ReportHealth is the feature gate ResourceHealthStatus.
	ReportHealth bool
	Log          *slog.Logger
}

func (m *Managers) Prepare(ctx context.Context, p *v1.Pod, observed *pod.Observed) error {
	if err := m.Devices.Prepare(ctx, p, observed); err != nil {
		return err
	}
	return m.Claims.Prepare(ctx, p, observed)
}

func (m *Managers) Extras(ctx context.Context, p *v1.Pod, c *v1.Container) (runtime.Extras, error) {
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

func (m *Managers) Release(ctx context.Context, ref pod.Ref) error {
	m.Aligner.Release(ref.UID)
	return m.Claims.Release(ctx, ref.UID)
}

func (m *Managers) Health(p *v1.Pod, container string) []v1.ResourceStatus {
	if !m.ReportHealth {
		return nil
	}
	return append(m.Devices.Health(p.UID, container), m.Claims.Health(p, container)...)
}

// Retain releases what pods hold that are not known any more.
func (m *Managers) Retain(ctx context.Context, known func(types.UID) bool) error {
	m.Devices.Retain(known)
	for _, uid := range append(m.CPUs.Pods(), m.Memory.Pods()...) {
		if !known(uid) {
			m.Log.Info("resource managers: releasing resources of a removed pod", "pod", uid)
			m.Aligner.Release(uid)
		}
	}
	return m.Claims.Retain(ctx, known)
}
