package device

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// allocation is one container's devices of one resource.
type allocation struct {
	// nodes are the NUMA nodes of each device, by its id.
	nodes map[string][]int64
	// response is that of the plugin; nil while the devices are only reserved.
	response *pluginapi.ContainerAllocateResponse
	// unverified: the allocation is from the checkpoint, and the machine may have rebooted since.
	unverified bool
}

func (g *allocation) ids() []string { return slices.Sorted(maps.Keys(g.nodes)) }

// verified reports whether the container has its devices. A nil allocation has none.
func (g *allocation) verified() bool { return g != nil && g.response != nil && !g.unverified }

// allocationKey identifies an allocation.
type allocationKey struct {
	pod                 types.UID
	container, resource string
}

// allocations are those of all pods. Containers of one pod that never run at the same time may
// share a device.
type allocations map[allocationKey]*allocation

func (g allocations) has(resource string) bool {
	for key := range g {
		if key.resource == resource {
			return true
		}
	}
	return false
}

// taken returns the allocated devices of a resource, ignoring some allocations.
func (g allocations) taken(resource string, ignore func(allocationKey) bool) map[string]bool {
	taken := map[string]bool{}
	for key, k := range g {
		if key.resource == resource && !ignore(key) {
			for id := range k.nodes {
				taken[id] = true
			}
		}
	}
	return taken
}

// ofContainer returns the allocations of one container, by resource.
func (g allocations) ofContainer(pod types.UID, container string) map[string]*allocation {
	found := map[string]*allocation{}
	for key, k := range g {
		if key.pod == pod && key.container == container {
			found[key.resource] = k
		}
	}
	return found
}

// owners returns the pods that have one of the devices.
func (g allocations) owners(resource string, devices map[string]bool) map[types.UID]bool {
	owners := map[types.UID]bool{}
	for key, k := range g {
		for id := range k.nodes {
			if key.resource == resource && devices[id] {
				owners[key.pod] = true
			}
		}
	}
	return owners
}

// verify marks the pod's allocations as verified.
func (g allocations) verify(pod types.UID) {
	for key, k := range g {
		if key.pod == pod {
			k.unverified = false
		}
	}
}

// remove deletes the allocations of the matching pods, and reports whether the checkpoint
// contained any of them.
func (g allocations) remove(match func(types.UID) bool) (saved bool) {
	for key, k := range g {
		if match(key.pod) {
			saved = saved || k.response != nil
			delete(g, key)
		}
	}
	return saved
}
