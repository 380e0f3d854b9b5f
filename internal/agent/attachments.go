package agent

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// attachments is the node's status as far as volumes that a controller attaches go.
type attachments struct {
	agent    *Agent
	mu       sync.Mutex
	reported []v1.UniqueVolumeName
}

// InUse reports whether the API server has the volume in the node's status. Where it does
// not, it is told now instead of with the next regular report.
func (a *attachments) InUse(name v1.UniqueVolumeName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.reported, name) {
		return true
	}
	a.agent.machine.node.Poke()
	return false
}

// Attached looks at what the attach controller wrote.
func (a *attachments) Attached(name v1.UniqueVolumeName) (devicePath string, ok bool) {
	node, err := a.agent.watchedNode()
	if err != nil {
		return "", false
	}
	for _, v := range node.Status.VolumesAttached {
		if v.Name == name {
			return v.DevicePath, true
		}
	}
	return "", false
}

// list is what the node's status is to say. As long as an earlier agent may have left
// volumes in use, none that it reported is taken back.
func (a *attachments) list() ([]v1.UniqueVolumeName, bool) {
	names, settled := a.agent.pods.volumes.InUse()
	if settled {
		return names, true
	}
	node, err := a.agent.watchedNode()
	if err != nil {
		return nil, false
	}
	names = append(names, node.Status.VolumesInUse...)
	slices.Sort(names)
	return slices.Compact(names), true
}

// written is told what the API server has.
func (a *attachments) written(names []v1.UniqueVolumeName) {
	a.mu.Lock()
	same := slices.Equal(a.reported, names)
	a.reported = slices.Clone(names)
	a.mu.Unlock()
	if !same {
		a.agent.pods.volumes.NodeChanged()
	}
}
