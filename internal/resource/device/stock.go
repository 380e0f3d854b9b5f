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

// stock is what is known of one resource.
type stock struct {
	// plugins are connected, the one in use last. While a plugin is replaced there may be two.
	plugins []*plugin
	// devices are as the plugin in use last told, by id. They outlive it.
	devices map[string]*pluginapi.Device
	// options are those of the plugin that came last.
	options *pluginapi.DevicePluginOptions
	// left is since when there has been no plugin, zero while there is one.
	left time.Time
}

// inUse is the plugin that is asked, nil where there is none that has told its devices.
func (s *stock) inUse() *plugin {
	if s == nil || len(s.plugins) == 0 {
		return nil
	}
	if p := s.plugins[len(s.plugins)-1]; p.devices != nil {
		return p
	}
	return nil
}

// healthy are the devices that can be given. Nobody vouches for those of a plugin that left.
func (s *stock) healthy() map[string]bool {
	healthy := map[string]bool{}
	if s.inUse() == nil {
		return healthy
	}
	for id, d := range s.devices {
		if d.Health == pluginapi.Healthy {
			healthy[id] = true
		}
	}
	return healthy
}

// nodes are the NUMA nodes that a device belongs to.
func (s *stock) nodes(id string) []int64 {
	var nodes []int64
	for _, n := range s.devices[id].GetTopology().GetNodes() {
		nodes = append(nodes, n.GetID())
	}
	return nodes
}

// expired: the plugin left so long ago that the resource is not the node's any more.
func (m *Manager) expired(s *stock) bool {
	return !s.left.IsZero() && m.deps.Clock.Since(s.left) > grace
}

// Amounts are the node's devices.
type Amounts struct {
	Capacity, Allocatable v1.ResourceList
	// Removed had a plugin once.
	Removed []v1.ResourceName
}

// Amounts counts the node's devices, and forgets resources whose plugins left long ago.
func (m *Manager) Amounts() Amounts {
	m.mu.Lock()
	all := Amounts{Capacity: v1.ResourceList{}, Allocatable: v1.ResourceList{}}
	forgot := false
	for name, s := range m.resources {
		if m.expired(s) {
			delete(m.resources, name)
			m.removed[name], forgot = true, true
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
	if forgot {
		if err := m.saveDevices(); err != nil {
			m.deps.Log.Error("the loss of a device plugin was not written down", "err", err)
		}
	}
	return all
}

// listed takes the devices that a plugin has told.
func (m *Manager) listed(p *plugin, devices []*pluginapi.Device) {
	told := make(map[string]*pluginapi.Device, len(devices))
	for _, d := range devices {
		told[d.GetID()] = d
	}
	m.mu.Lock()
	p.devices = told
	s := m.resources[p.resource]
	current := s != nil && s.inUse() == p
	var wake map[types.UID]bool
	if current {
		wake = m.use(p.resource, s, told)
	}
	m.mu.Unlock()
	if current {
		m.announce(wake)
	}
}

// use makes the devices those of the resource, and returns the pods that this concerns:
// those that wait for them, and those that have one of which the health has changed.
// Called under the lock.
func (m *Manager) use(resource string, s *stock, devices map[string]*pluginapi.Device) map[types.UID]bool {
	changed := map[string]bool{}
	for id, d := range devices {
		if was, known := s.devices[id]; !known || was.Health != d.Health {
			changed[id] = true
		}
	}
	s.devices = devices
	wake := m.grants.owners(resource, changed)
	for pod := range m.waiting {
		wake[pod] = true
	}
	return wake
}

// announce writes down which devices there are and tells all that it concerns.
func (m *Manager) announce(wake map[types.UID]bool) {
	if err := m.saveDevices(); err != nil {
		m.deps.Log.Error("the node's devices were not written down", "err", err)
	}
	m.deps.Changed()
	for pod := range maps.Keys(wake) {
		m.deps.Wake(pod)
	}
}
