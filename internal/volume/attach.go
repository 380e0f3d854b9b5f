package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/why"
)

// Attachments reads and updates the attached volumes in the node's status.
type Attachments interface {
	// InUse reports whether the API server has the volume in the node's volumesInUse: only then
	// does the controller keep it attached. If not, it triggers an update of the status.
	InUse(name v1.UniqueVolumeName) bool
	// Attached returns the device path from the node's volumesAttached; ok is false if the volume
	// is not attached.
	Attached(name v1.UniqueVolumeName) (devicePath string, ok bool)
}

// waitForAttach returns nil once the volume is attached to this node, or if it need not be.
func (v *Volumes) waitForAttach(ctx context.Context, kind plugin.Plugin, r *plugin.Request, d *device) error {
	attacher, ok := kind.(plugin.Attacher)
	if !ok {
		return nil
	}
	wait := func(err error) error {
		return failed(reasonMount, operationName(r.Spec)+".WaitForAttach", r.Name(), err)
	}
	name, err := attacher.AttachName(ctx, r.Spec)
	if err != nil {
		return wait(err)
	}
	v.setAttachName(d, r.Spec, name)
	if name == "" {
		return nil
	}
	if v.deps.Attachments != nil {
		if r.DevicePath, err = v.attachedDevice(name); err != nil {
			return err
		}
	}
	if err := attacher.Attached(ctx, *r); err != nil {
		return wait(err)
	}
	if connector, ok := kind.(plugin.Connector); ok {
		if r.DevicePath, err = v.connect(ctx, connector, *r, d); err != nil {
			return wait(err)
		}
	}
	return nil
}

// connect connects to an attached volume, unless it is staged.
func (v *Volumes) connect(ctx context.Context, connector plugin.Connector, r plugin.Request, d *device) (string, error) {
	if d != nil && v.isStaged(d) {
		return v.devicePath(d), nil
	}
	path, err := connector.Connect(ctx, r)
	if err == nil && d != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		d.path = path
	}
	return path, err
}

// devicePath is the path of a connected device, "" for others.
func (v *Volumes) devicePath(d *device) string {
	if d == nil {
		return ""
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return d.path
}

// attachedDevice reads the node's status. A volume that is missing there is no failure yet: a change
// of the node wakes the wait, and only its timeout becomes an event.
func (v *Volumes) attachedDevice(name v1.UniqueVolumeName) (devicePath string, err error) {
	if !v.deps.Attachments.InUse(name) {
		return "", waiting(why.Because(why.VolumeNotAttached, "", errors.New("volume has not been added to the list of VolumesInUse in the node's volume status")))
	}
	devicePath, ok := v.deps.Attachments.Attached(name)
	if !ok {
		return "", waiting(why.Because(why.VolumeNotAttached, "", fmt.Errorf("volume %s is not yet in node's status", name)))
	}
	return devicePath, nil
}

// setAttachName sets the name of the volume in the node's status, "" if it need not be attached. If the
// name becomes "" while the volume is in use, the controller may detach it.
func (v *Volumes) setAttachName(d *device, s plugin.Spec, name v1.UniqueVolumeName) {
	if d == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	before := d.attachName
	d.attachName, d.attachSpec = name, s
	if name == "" {
		v.notifyInUseChanged(before)
	}
}

// recheckAttachable checks whether the attached volumes still have to be attached.
func (v *Volumes) recheckAttachable(ctx context.Context) {
	v.mu.Lock()
	attached := map[*device]plugin.Spec{}
	for _, d := range v.devices {
		if d.attachName != "" {
			attached[d] = d.attachSpec
		}
	}
	v.mu.Unlock()
	for d, s := range attached {
		name, err := d.kind.(plugin.Attacher).AttachName(ctx, s)
		if err == nil && name == "" {
			v.setAttachName(d, s, "")
		}
	}
}

// NodeChanged makes the volumes that wait for attach read the node's status again.
func (v *Volumes) NodeChanged() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, d := range v.devices {
		if d.attachName == "" {
			continue
		}
		for uid, has := range d.users {
			if pv := v.pods[uid]; pv != nil && !has {
				pv.retryUnmounted()
			}
		}
	}
}

// InUse lists the attachable volumes that pods use or that are not unstaged yet. While complete is
// false, an earlier agent may have left others.
func (v *Volumes) InUse() (names []v1.UniqueVolumeName, complete bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, d := range v.devices {
		if d.attachName != "" && !slices.Contains(names, d.attachName) {
			names = append(names, d.attachName)
		}
	}
	slices.Sort(names)
	v.complete = v.complete || v.orphansUnstaged && v.attachableKnownLocked()
	return names, v.complete
}

// attachableKnownLocked reports whether every attachable volume on disk is known.
func (v *Volumes) attachableKnownLocked() bool {
	for _, d := range v.devices {
		if _, attachable := d.kind.(plugin.Attacher); attachable && d.unstaging && d.attachName == "" {
			return false // left by an earlier agent; only the API server knows its name
		}
	}
	uids, err := v.PodDirs()
	if err != nil {
		return false
	}
	for _, uid := range uids {
		if v.pods[uid] == nil && v.hasAttachable(uid) {
			return false
		}
	}
	return true
}

func (v *Volumes) hasAttachable(uid types.UID) bool {
	for _, kind := range v.kinds() {
		if _, attachable := kind.(plugin.Attacher); !attachable {
			continue
		}
		if all, err := v.published(uid, kind); err != nil || len(all) > 0 {
			return true
		}
	}
	return false
}
