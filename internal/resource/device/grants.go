package device

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// grant is what one container has of one resource.
type grant struct {
	// nodes are the NUMA nodes of each device, by its id.
	nodes map[string][]int64
	// answer says how the container uses them; nil while they are only set aside.
	answer *pluginapi.ContainerAllocateResponse
}

func (g *grant) ids() []string { return slices.Sorted(maps.Keys(g.nodes)) }

// place is what a grant is for.
type place struct {
	pod                 types.UID
	container, resource string
}

// grants are all that was given. Containers of one pod that never run at the same time may
// have the same device.
type grants map[place]*grant

func (g grants) has(resource string) bool {
	for at := range g {
		if at.resource == resource {
			return true
		}
	}
	return false
}

// taken are the devices of a resource that are not free, leaving some places out of account.
func (g grants) taken(resource string, but func(place) bool) map[string]bool {
	taken := map[string]bool{}
	for at, one := range g {
		if at.resource == resource && !but(at) {
			for id := range one.nodes {
				taken[id] = true
			}
		}
	}
	return taken
}

// of are the grants of one container, by resource.
func (g grants) of(pod types.UID, container string) map[string]*grant {
	found := map[string]*grant{}
	for at, one := range g {
		if at.pod == pod && at.container == container {
			found[at.resource] = one
		}
	}
	return found
}

// owners are the pods that have one of the devices.
func (g grants) owners(resource string, devices map[string]bool) map[types.UID]bool {
	owners := map[types.UID]bool{}
	for at, one := range g {
		for id := range one.nodes {
			if at.resource == resource && devices[id] {
				owners[at.pod] = true
			}
		}
	}
	return owners
}

// drop takes back all that the pods have, and reports whether any of it was written down.
func (g grants) drop(unwanted func(types.UID) bool) (recorded bool) {
	for at, one := range g {
		if unwanted(at.pod) {
			recorded = recorded || one.answer != nil
			delete(g, at)
		}
	}
	return recorded
}
