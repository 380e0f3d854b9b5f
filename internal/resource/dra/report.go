package dra

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// CDIDevices are what of its claims a container is given.
func (m *Manager) CDIDevices(p *v1.Pod, c *v1.Container) ([]*runtimeapi.CDIDevice, error) {
	wanted, err := requests(p, c)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*runtimeapi.CDIDevice
	for at, names := range wanted {
		found := m.claims[at]
		if found == nil {
			return nil, fmt.Errorf("internal error: unable to get claim info for ResourceClaim %s in namespace %s", at.name, at.namespace)
		}
		for _, name := range names {
			for _, id := range found.cdi(name) {
				all = append(all, &runtimeapi.CDIDevice{Name: id})
			}
		}
	}
	return all, nil
}

// cdi are the ids of the devices of one request; an empty name is all of them.
func (c *claim) cdi(request string) []string {
	var ids []string
	for _, name := range slices.Sorted(maps.Keys(c.DriverState)) {
		for _, d := range c.DriverState[name].Devices {
			if d.serves(request) {
				ids = append(ids, d.CDIDeviceIDs...)
			}
		}
	}
	return ids
}

// serves: the device is part of what the request got; an empty one is all of them.
func (d device) serves(request string) bool {
	return request == "" || len(d.RequestNames) == 0 || slices.Contains(d.RequestNames, request)
}

// DynamicResources shows a container's claims, for the PodResources API.
func (m *Manager) DynamicResources(p *v1.Pod, c *v1.Container) []*resourcesv1.DynamicResource {
	wanted, err := requests(p, c)
	if err != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*resourcesv1.DynamicResource
	for at := range wanted {
		found := m.claims[at]
		if found == nil {
			continue
		}
		one := &resourcesv1.DynamicResource{ClaimName: at.name, ClaimNamespace: at.namespace}
		for _, name := range slices.Sorted(maps.Keys(found.DriverState)) {
			for _, d := range found.DriverState[name].Devices {
				shown := &resourcesv1.ClaimResource{DriverName: name, PoolName: d.PoolName, DeviceName: d.DeviceName, ShareId: (*string)(d.ShareID)}
				for _, id := range d.CDIDeviceIDs {
					shown.CdiDevices = append(shown.CdiDevices, &resourcesv1.CDIDevice{Name: id})
				}
				one.ClaimResources = append(one.ClaimResources, shown)
			}
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *resourcesv1.DynamicResource) int { return cmp.Compare(a.ClaimName, b.ClaimName) })
	return all
}
