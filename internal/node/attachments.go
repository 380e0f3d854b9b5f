package node

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// Attachments connects the Node's status with the volumes that the attach/detach controller
// attaches. The controller detaches only volumes that are not in status.volumesInUse.
type Attachments struct {
	watched func() (*v1.Node, error)
	// requestReport is called when a volume waits to be listed in the status, and inUseChanged
	// when the API server has a different list.
	requestReport, inUseChanged func()

	mu    sync.Mutex
	inUse []v1.UniqueVolumeName // status.volumesInUse in the API server
}

// NewAttachments makes Attachments of three functions: watched returns the Node of the
// informer, requestReport has the status reported soon, and inUseChanged is called when the
// API server has a different list of volumes in use.
func NewAttachments(watched func() (*v1.Node, error), requestReport, inUseChanged func()) *Attachments {
	return &Attachments{watched: watched, requestReport: requestReport, inUseChanged: inUseChanged}
}

// InUse reports whether the API server lists the volume as in use. If not, it requests a
// report of the status now instead of at the next interval.
func (a *Attachments) InUse(name v1.UniqueVolumeName) bool {
	a.mu.Lock()
	found := slices.Contains(a.inUse, name)
	a.mu.Unlock()
	if !found {
		a.requestReport()
	}
	return found
}

// Attached returns the device path of a volume that the attach/detach controller has
// attached.
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

// Merge returns the list for the status, given the volumes in use. While volumes of an earlier
// agent may not have been found yet (settled is false), it keeps the volumes that the status
// lists. known is false while the Node cannot be read.
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

// Reported records the list that the API server has.
func (a *Attachments) Reported(names []v1.UniqueVolumeName) {
	a.mu.Lock()
	same := slices.Equal(a.inUse, names)
	a.inUse = slices.Clone(names)
	a.mu.Unlock()
	if !same {
		a.inUseChanged()
	}
}
