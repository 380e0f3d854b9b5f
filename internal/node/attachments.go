package node

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// Attachments connects the Node's status with the volumes that the attach/detach controller
// attaches: it may detach only what the status does not list as in use.
type Attachments struct {
	watched func() (*v1.Node, error)
	// requested is called when a volume waits for the status to list it, and reported when
	// the API server has another list.
	requested, reported func()

	mu    sync.Mutex
	inUse []v1.UniqueVolumeName // as the API server has it
}

// NewAttachments takes the Node as the watch last showed it. requested has the status sent
// soon, reported is called when the API server has another list of volumes in use.
func NewAttachments(watched func() (*v1.Node, error), requested, reported func()) *Attachments {
	return &Attachments{watched: watched, requested: requested, reported: reported}
}

// InUse reports whether the API server has the volume in the Node's status. Where it does
// not, the status is sent now instead of with the next regular report.
func (a *Attachments) InUse(name v1.UniqueVolumeName) bool {
	a.mu.Lock()
	found := slices.Contains(a.inUse, name)
	a.mu.Unlock()
	if !found {
		a.requested()
	}
	return found
}

// Attached reports where the attach/detach controller has attached the volume.
func (a *Attachments) Attached(name v1.UniqueVolumeName) (devicePath string, ok bool) {
	node, err := a.watched()
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

// Merge is what the status has to list, given what is in use. While volumes of an earlier
// agent may still be found (settled is false), all that the status lists already stay.
func (a *Attachments) Merge(inUse []v1.UniqueVolumeName, settled bool) (_ []v1.UniqueVolumeName, known bool) {
	if settled {
		return inUse, true
	}
	node, err := a.watched()
	if err != nil {
		return nil, false
	}
	names := append(slices.Clone(inUse), node.Status.VolumesInUse...)
	slices.Sort(names)
	return slices.Compact(names), true
}

// Reported takes the list that the API server has.
func (a *Attachments) Reported(names []v1.UniqueVolumeName) {
	a.mu.Lock()
	same := slices.Equal(a.inUse, names)
	a.inUse = slices.Clone(names)
	a.mu.Unlock()
	if !same {
		a.reported()
	}
}
