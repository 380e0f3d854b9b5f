package device

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// resourceState is the state of one resource.
type resourceState struct {
	// plugins are connected, the active one last. During a rolling update there may be two.
	plugins []*plugin
	// devices are the last list of the active plugin, by id. They remain when it disconnects.
	devices map[string]*pluginapi.Device
	// options are those of the last plugin that connected.
	options *pluginapi.DevicePluginOptions
	// lostAt is when the last plugin disconnected, zero while there is one.
	lostAt time.Time
}

// active returns the last connected plugin, or nil if it has not listed its devices yet.
func (s *resourceState) active() *plugin {
	if s == nil || len(s.plugins) == 0 {
		return nil
	}
	if p := s.plugins[len(s.plugins)-1]; p.devices != nil {
		return p
	}
	return nil
}

// healthy returns the devices that can be allocated: none without an active plugin.
func (s *resourceState) healthy() map[string]bool {
	healthy := map[string]bool{}
	if s.active() == nil {
		return healthy
	}
	for id, d := range s.devices {
		if d.Health == pluginapi.Healthy {
			healthy[id] = true
		}
	}
	return healthy
}

// nodes returns the NUMA nodes of a device.
func (s *resourceState) nodes(id string) []int64 {
	var nodes []int64
	for _, n := range s.devices[id].GetTopology().GetNodes() {
		nodes = append(nodes, n.GetID())
	}
	return nodes
}

// expired reports whether pluginGrace has passed since the last plugin disconnected.
func (m *Manager) expired(s *resourceState) bool {
	return !s.lostAt.IsZero() && m.deps.Clock.Since(s.lostAt) > pluginGrace
}

// Amounts are the node's device resources.
type Amounts struct {
	Capacity, Allocatable v1.ResourceList
	// Removed are resources whose plugin has been gone for longer than pluginGrace.
	Removed []v1.ResourceName
}

// Amounts returns the node's device resources, and drops expired ones.
func (m *Manager) Amounts() Amounts {
	m.mu.Lock()
	all := Amounts{Capacity: v1.ResourceList{}, Allocatable: v1.ResourceList{}}
	expired := false
	for name, s := range m.resources {
		if m.expired(s) {
			delete(m.resources, name)
			m.removed[name], expired = true, true
			continue
		}
		all.Capacity[v1.ResourceName(name)] = *resource.NewQuantity(int64(len(s.devices)), resource.DecimalSI)
		all.Allocatable[v1.ResourceName(name)] = *resource.NewQuantity(int64(len(s.healthy())), resource.DecimalSI)
	}
	for name := range m.removed {
		all.Removed = append(all.Removed, v1.ResourceName(name))
	}
	m.mu.Unlock()
	slices.Sort(all.Removed)
	if expired {
		if err := m.saveDevices(); err != nil {
			m.deps.Log.Error("device manager: cannot write checkpoint after resource expired", "err", err)
		}
	}
	return all
}

// setDevices stores the list of a plugin.
func (m *Manager) setDevices(p *plugin, devices []*pluginapi.Device) {
	reported := make(map[string]*pluginapi.Device, len(devices))
	for _, d := range devices {
		reported[d.GetID()] = d
	}
	m.mu.Lock()
	p.devices = reported
	s := m.resources[p.resource]
	current := s != nil && s.active() == p
	var affected map[types.UID]bool
	if current {
		affected = m.useDevicesLocked(p.resource, s, reported)
	}
	m.mu.Unlock()
	if current {
		m.publishDevices(affected)
	}
}

// useDevicesLocked sets the devices of the resource, and returns the affected pods: those that
// wait for a plugin, and those that have a device whose health changed.
func (m *Manager) useDevicesLocked(resource string, s *resourceState, devices map[string]*pluginapi.Device) map[types.UID]bool {
	changed := map[string]bool{}
	for id, d := range devices {
		if was, known := s.devices[id]; !known || was.Health != d.Health {
			changed[id] = true
		}
	}
	s.devices = devices
	affected := m.allocations.owners(resource, changed)
	for pod := range m.waiting {
		affected[pod] = true
	}
	return affected
}

// publishDevices writes the devices to the checkpoint, and notifies the node and the affected
// pods.
func (m *Manager) publishDevices(affected map[types.UID]bool) {
	if err := m.saveDevices(); err != nil {
		m.deps.Log.Error("device manager: cannot write checkpoint after device list changed", "err", err)
	}
	m.deps.Changed()
	for pod := range maps.Keys(affected) {
		m.deps.Wake(pod)
	}
}
