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

// Options are the container settings that plugins returned for its devices.
type Options struct {
	Envs        []*runtimeapi.KeyValue
	Mounts      []*runtimeapi.Mount
	Devices     []*runtimeapi.Device
	CDIDevices  []*runtimeapi.CDIDevice
	Annotations map[string]string
}

// Options calls PreStartContainer of the plugins that require it, and returns the settings for
// the container's devices.
func (m *Manager) Options(ctx context.Context, p *v1.Pod, c *v1.Container) (Options, error) {
	m.mu.Lock()
	allocated := m.allocations.ofContainer(p.UID, c.Name)
	m.mu.Unlock()
	b := builder{seen: map[string]bool{}}
	for _, resource := range slices.Sorted(maps.Keys(allocated)) {
		g := allocated[resource]
		if err := m.preStart(ctx, resource, g); err != nil {
			return Options{}, err
		}
		b.add(g.response)
	}
	return b.Options, nil
}

// preStart calls the plugin's PreStartContainer if it requires that.
func (m *Manager) preStart(ctx context.Context, resource string, g *allocation) error {
	m.mu.Lock()
	s := m.resources[resource]
	plugin := s.active()
	required := s != nil && s.options.GetPreStartRequired()
	m.mu.Unlock()
	if !required {
		return nil
	}
	if plugin == nil {
		return fmt.Errorf("pre-start container: device plugin of %s is not connected", resource)
	}
	ctx, cancel := context.WithTimeout(ctx, pluginapi.KubeletPreStartContainerRPCTimeoutInSecs*time.Second)
	defer cancel()
	if _, err := plugin.client.PreStartContainer(ctx, &pluginapi.PreStartContainerRequest{DevicesIds: g.ids()}); err != nil {
		return fmt.Errorf("device plugin PreStartContainer rpc failed with err: %w", err)
	}
	return nil
}

// builder merges the settings of several plugins; the first of two that set the same wins.
type builder struct {
	Options
	seen map[string]bool
}

func (b *builder) addOnce(kind, key string) bool {
	key = kind + " " + key
	was := b.seen[key]
	b.seen[key] = true
	return !was
}

func (b *builder) add(a *pluginapi.ContainerAllocateResponse) {
	for _, name := range slices.Sorted(maps.Keys(a.GetEnvs())) {
		if b.addOnce("env", name) {
			b.Envs = append(b.Envs, &runtimeapi.KeyValue{Key: name, Value: []byte(a.GetEnvs()[name])})
		}
	}
	for _, d := range a.GetDevices() {
		if b.addOnce("device", d.GetContainerPath()) {
			b.Devices = append(b.Devices, &runtimeapi.Device{
				HostPath: d.GetHostPath(), ContainerPath: d.GetContainerPath(), Permissions: d.GetPermissions(),
			})
		}
	}
	for _, m := range a.GetMounts() {
		if b.addOnce("mount", m.GetContainerPath()) {
			b.Mounts = append(b.Mounts, &runtimeapi.Mount{
				HostPath: m.GetHostPath(), ContainerPath: m.GetContainerPath(), Readonly: m.GetReadOnly(),
			})
		}
	}
	for name, value := range a.GetAnnotations() {
		if b.addOnce("annotation", name) {
			if b.Annotations == nil {
				b.Annotations = map[string]string{}
			}
			b.Annotations[name] = value
		}
	}
	for _, d := range a.GetCdiDevices() {
		if b.addOnce("cdi", d.GetName()) {
			b.CDIDevices = append(b.CDIDevices, &runtimeapi.CDIDevice{Name: d.GetName()})
		}
	}
}
