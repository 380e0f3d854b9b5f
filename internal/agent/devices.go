package agent

import (
	"context"
	"path/filepath"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/node"
	"swiftlet/internal/pod"
	"swiftlet/internal/resource/device"
	"swiftlet/internal/runtime"
)

// makeDevices makes those who give out more than a share of CPU and memory.
func (a *Agent) makeDevices() (err error) {
	p := &a.pods
	p.devices, err = device.New(device.Config{
		Dir:   filepath.Join(a.cfg.Flags.RootDir, "device-plugins"),
		Nodes: a.given.layout.All,
	}, device.Deps{
		Running: a.runs,
		Wake:    func(uid types.UID) { p.workers.Wake(uid) },
		Changed: a.machine.node.Poke,
		Events:  a.api.events,
		Meters:  a.metrics.Devices(),
		Clock:   a.clock,
		Log:     a.log,
	})
	return err
}

// runs reports whether a container was last seen running.
func (a *Agent) runs(uid types.UID, container string) bool {
	o, ok := a.pods.observer.Get(uid)
	return ok && slices.ContainsFunc(o.Live(), func(c pod.Container) bool { return c.Name == container })
}

// deviceAmounts tells the node which devices it has.
func (a *Agent) deviceAmounts() node.Devices {
	all := a.pods.devices.Amounts()
	return node.Devices{Capacity: all.Capacity, Allocatable: all.Allocatable, Removed: all.Removed}
}

// podResources connects a pod's steps to those who give out resources.
type podResources struct{ *Agent }

func (r podResources) Prepare(ctx context.Context, p *v1.Pod, observed *pod.Observed) error {
	if err := r.pods.devices.Prepare(ctx, p, observed); err != nil {
		return err
	}
	return r.pods.claims.Prepare(ctx, p, observed)
}

func (r podResources) Extras(ctx context.Context, p *v1.Pod, c *v1.Container) (runtime.Extras, error) {
	options, err := r.pods.devices.Options(ctx, p, c)
	if err != nil {
		return runtime.Extras{}, err
	}
	claimed, err := r.pods.claims.CDIDevices(p, c)
	extras := runtime.Extras{
		Mounts: options.Mounts, Devices: options.Devices, CDIDevices: append(options.CDIDevices, claimed...), Annotations: options.Annotations,
	}
	for _, e := range options.Envs {
		extras.Envs = append(extras.Envs, runtime.EnvVar{Name: e.Key, Value: string(e.Value)})
	}
	return extras, err
}

func (r podResources) Release(ctx context.Context, ref pod.Ref) error {
	r.pods.aligner.Release(ref.UID)
	return r.pods.claims.Release(ctx, ref.UID)
}

func (r podResources) Health(p *v1.Pod, container string) []v1.ResourceStatus {
	if !r.cfg.Features.ResourceHealthStatus {
		return nil
	}
	return append(r.pods.devices.Health(p.UID, container), r.pods.claims.Health(p, container)...)
}
