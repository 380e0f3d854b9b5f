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

// CDIDevices returns the CDI devices of a container's claims.
func (m *Manager) CDIDevices(p *v1.Pod, c *v1.Container) ([]*runtimeapi.CDIDevice, error) {
	requests, err := containerRequests(p, c)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*runtimeapi.CDIDevice
	for k, names := range requests {
		found := m.claims[k]
		if found == nil {
			return nil, fmt.Errorf("internal error: unable to get claim info for ResourceClaim %s in namespace %s", k.name, k.namespace)
		}
		for _, name := range names {
			for _, id := range found.cdiIDs(name) {
				all = append(all, &runtimeapi.CDIDevice{Name: id})
			}
		}
	}
	return all, nil
}

// cdiIDs returns the CDI ids of the devices of one request; an empty request is the whole claim.
func (c *claim) cdiIDs(request string) []string {
	var ids []string
	for _, name := range slices.Sorted(maps.Keys(c.DriverState)) {
		for _, d := range c.DriverState[name].Devices {
			if d.satisfies(request) {
				ids = append(ids, d.CDIDeviceIDs...)
			}
		}
	}
	return ids
}

// satisfies reports whether the device was allocated for the request; every device satisfies an
// empty one.
func (d device) satisfies(request string) bool {
	return request == "" || len(d.RequestNames) == 0 || slices.Contains(d.RequestNames, request)
}

// DynamicResources returns a container's claims for the PodResources API.
func (m *Manager) DynamicResources(p *v1.Pod, c *v1.Container) []*resourcesv1.DynamicResource {
	requests, err := containerRequests(p, c)
	if err != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*resourcesv1.DynamicResource
	for k := range requests {
		found := m.claims[k]
		if found == nil {
			continue
		}
		resource := &resourcesv1.DynamicResource{ClaimName: k.name, ClaimNamespace: k.namespace}
		for _, name := range slices.Sorted(maps.Keys(found.DriverState)) {
			for _, d := range found.DriverState[name].Devices {
				device := &resourcesv1.ClaimResource{DriverName: name, PoolName: d.PoolName, DeviceName: d.DeviceName, ShareId: (*string)(d.ShareID)}
				for _, id := range d.CDIDeviceIDs {
					device.CdiDevices = append(device.CdiDevices, &resourcesv1.CDIDevice{Name: id})
				}
				resource.ClaimResources = append(resource.ClaimResources, device)
			}
		}
		all = append(all, resource)
	}
	slices.SortFunc(all, func(a, b *resourcesv1.DynamicResource) int { return cmp.Compare(a.ClaimName, b.ClaimName) })
	return all
}
