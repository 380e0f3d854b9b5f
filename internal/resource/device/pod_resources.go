package device

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Devices returns a container's devices for the PodResources API.
func (m *Manager) Devices(pod types.UID, container string) []*resourcesv1.ContainerDevices {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*resourcesv1.ContainerDevices
	allocated := m.allocations.ofContainer(pod, container)
	for _, resource := range slices.Sorted(maps.Keys(allocated)) {
		for _, id := range allocated[resource].ids() {
			all = append(all, containerDevices(resource, id, allocated[resource].nodes[id])...)
		}
	}
	return all
}

// AllocatableDevices returns all healthy devices, allocated or not.
func (m *Manager) AllocatableDevices() []*resourcesv1.ContainerDevices {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*resourcesv1.ContainerDevices
	for _, resource := range slices.Sorted(maps.Keys(m.resources)) {
		s := m.resources[resource]
		for _, id := range slices.Sorted(maps.Keys(s.healthy())) {
			all = append(all, containerDevices(resource, id, s.nodes(id))...)
		}
	}
	return all
}

// containerDevices returns one device, once for each of its NUMA nodes, as the API requires.
func containerDevices(resource, id string, nodes []int64) []*resourcesv1.ContainerDevices {
	if len(nodes) == 0 {
		return []*resourcesv1.ContainerDevices{{ResourceName: resource, DeviceIds: []string{id}}}
	}
	var all []*resourcesv1.ContainerDevices
	for _, n := range nodes {
		all = append(all, &resourcesv1.ContainerDevices{
			ResourceName: resource, DeviceIds: []string{id},
			Topology: &resourcesv1.TopologyInfo{Nodes: []*resourcesv1.NUMANode{{ID: n}}},
		})
	}
	return all
}

// Health returns the health of a container's devices, for the pod's status.
func (m *Manager) Health(pod types.UID, container string) []v1.ResourceStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []v1.ResourceStatus
	allocated := m.allocations.ofContainer(pod, container)
	for _, resource := range slices.Sorted(maps.Keys(allocated)) {
		k := v1.ResourceStatus{Name: v1.ResourceName(resource)}
		for _, id := range allocated[resource].ids() {
			k.Resources = append(k.Resources, v1.ResourceHealth{ResourceID: v1.ResourceID(id), Health: m.healthLocked(resource, id)})
		}
		all = append(all, k)
	}
	return all
}

// healthLocked returns the last reported health; healthy if the plugin reported none.
func (m *Manager) healthLocked(resource, id string) v1.ResourceHealthStatus {
	s := m.resources[resource]
	if s != nil && s.devices[id] != nil && s.devices[id].Health != pluginapi.Healthy {
		return v1.ResourceHealthStatusUnhealthy
	}
	return v1.ResourceHealthStatusHealthy
}
