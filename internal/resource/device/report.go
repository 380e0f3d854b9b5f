package device

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Devices shows what a container has, for the PodResources API.
func (m *Manager) Devices(pod types.UID, container string) []*resourcesv1.ContainerDevices {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*resourcesv1.ContainerDevices
	given := m.grants.of(pod, container)
	for _, resource := range slices.Sorted(maps.Keys(given)) {
		for _, id := range given[resource].ids() {
			all = append(all, shown(resource, id, given[resource].nodes[id])...)
		}
	}
	return all
}

// AllocatableDevices shows all healthy devices, given or not.
func (m *Manager) AllocatableDevices() []*resourcesv1.ContainerDevices {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*resourcesv1.ContainerDevices
	for _, resource := range slices.Sorted(maps.Keys(m.resources)) {
		s := m.resources[resource]
		for _, id := range slices.Sorted(maps.Keys(s.healthy())) {
			all = append(all, shown(resource, id, s.nodes(id))...)
		}
	}
	return all
}

// shown is one device, once for each of its NUMA nodes, as clients know it.
func shown(resource, id string, nodes []int64) []*resourcesv1.ContainerDevices {
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

// Health says how a container's devices are, for its status.
func (m *Manager) Health(pod types.UID, container string) []v1.ResourceStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []v1.ResourceStatus
	given := m.grants.of(pod, container)
	for _, resource := range slices.Sorted(maps.Keys(given)) {
		one := v1.ResourceStatus{Name: v1.ResourceName(resource)}
		for _, id := range given[resource].ids() {
			one.Resources = append(one.Resources, v1.ResourceHealth{ResourceID: v1.ResourceID(id), Health: m.health(resource, id)})
		}
		all = append(all, one)
	}
	return all
}

// health is what the plugin last said; where it said nothing, nothing is known to be wrong.
// Called under the lock.
func (m *Manager) health(resource, id string) v1.ResourceHealthStatus {
	s := m.resources[resource]
	if s != nil && s.devices[id] != nil && s.devices[id].Health != pluginapi.Healthy {
		return v1.ResourceHealthStatusUnhealthy
	}
	return v1.ResourceHealthStatusHealthy
}
