package device

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Options are what a container needs to use its devices.
type Options struct {
	Envs        []*runtimeapi.KeyValue
	Mounts      []*runtimeapi.Mount
	Devices     []*runtimeapi.Device
	CDIDevices  []*runtimeapi.CDIDevice
	Annotations map[string]string
}

// Options tells plugins that the container is about to be created, and returns what they
// have said that it needs.
func (m *Manager) Options(ctx context.Context, p *v1.Pod, c *v1.Container) (Options, error) {
	m.mu.Lock()
	given := m.grants.of(p.UID, c.Name)
	m.mu.Unlock()
	b := builder{seen: map[string]bool{}}
	for _, resource := range slices.Sorted(maps.Keys(given)) {
		g := given[resource]
		if err := m.preStart(ctx, resource, g); err != nil {
			return Options{}, err
		}
		b.add(g.answer)
	}
	return b.Options, nil
}

// preStart tells the plugin, where it wants to know.
func (m *Manager) preStart(ctx context.Context, resource string, g *grant) error {
	m.mu.Lock()
	s := m.resources[resource]
	plugin := s.inUse()
	required := s != nil && s.options.GetPreStartRequired()
	m.mu.Unlock()
	if !required {
		return nil
	}
	if plugin == nil {
		return fmt.Errorf("prepare devices of %s for a start: their plugin is away", resource)
	}
	ctx, cancel := context.WithTimeout(ctx, pluginapi.KubeletPreStartContainerRPCTimeoutInSecs*time.Second)
	defer cancel()
	if _, err := plugin.client.PreStartContainer(ctx, &pluginapi.PreStartContainerRequest{DevicesIds: g.ids()}); err != nil {
		return fmt.Errorf("device plugin PreStartContainer rpc failed with err: %w", err)
	}
	return nil
}

// builder joins what several plugins ask for; of two that want the same thing, the first
// has it.
type builder struct {
	Options
	seen map[string]bool
}

func (b *builder) first(kind, key string) bool {
	key = kind + " " + key
	was := b.seen[key]
	b.seen[key] = true
	return !was
}

func (b *builder) add(a *pluginapi.ContainerAllocateResponse) {
	for _, name := range slices.Sorted(maps.Keys(a.GetEnvs())) {
		if b.first("env", name) {
			b.Envs = append(b.Envs, &runtimeapi.KeyValue{Key: name, Value: []byte(a.GetEnvs()[name])})
		}
	}
	for _, d := range a.GetDevices() {
		if b.first("device", d.GetContainerPath()) {
			b.Devices = append(b.Devices, &runtimeapi.Device{
				HostPath: d.GetHostPath(), ContainerPath: d.GetContainerPath(), Permissions: d.GetPermissions(),
			})
		}
	}
	for _, m := range a.GetMounts() {
		if b.first("mount", m.GetContainerPath()) {
			b.Mounts = append(b.Mounts, &runtimeapi.Mount{
				HostPath: m.GetHostPath(), ContainerPath: m.GetContainerPath(), Readonly: m.GetReadOnly(),
			})
		}
	}
	for name, value := range a.GetAnnotations() {
		if b.first("annotation", name) {
			if b.Annotations == nil {
				b.Annotations = map[string]string{}
			}
			b.Annotations[name] = value
		}
	}
	for _, d := range a.GetCdiDevices() {
		if b.first("cdi", d.GetName()) {
			b.CDIDevices = append(b.CDIDevices, &runtimeapi.CDIDevice{Name: d.GetName()})
		}
	}
}
