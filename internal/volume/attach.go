package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/volume/plugin"
)

// Attachments is what the node's status says of volumes that a controller attaches.
type Attachments interface {
	// InUse reports whether the API server knows that the node uses the volume: only then
	// does the controller leave it attached. Where it does not, it is to be told now.
	InUse(name v1.UniqueVolumeName) bool
	// Attached tells where the controller attached the volume, and whether it did.
	Attached(name v1.UniqueVolumeName) (devicePath string, ok bool)
}

// awaitAttached returns nil once the volume is attached to this node, or need not be.
func (v *Volumes) awaitAttached(ctx context.Context, kind plugin.Plugin, r *plugin.Request, d *device) error {
	attacher, ok := kind.(plugin.Attacher)
	if !ok {
		return nil
	}
	wait := func(err error) error { return failed(reasonMount, stepOf(r.Spec)+".WaitForAttach", r.Name(), err) }
	name, err := attacher.AttachName(ctx, r.Spec)
	if err != nil {
		return wait(err)
	}
	v.markAttachable(d, r.Spec, name)
	if name == "" {
		return nil
	}
	if v.deps.Attachments != nil {
		if r.DevicePath, err = v.attachment(name); err != nil {
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

// connect reaches a volume that is attached, unless that is done.
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

// devicePath is where a device is that was connected, "" for others.
func (v *Volumes) devicePath(d *device) string {
	if d == nil {
		return ""
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return d.path
}

// attachment looks at the node's status. What is missing there is no failure yet but a
// wait: a change of the node wakes it, and only the end of all patience is told to users.
func (v *Volumes) attachment(name v1.UniqueVolumeName) (devicePath string, err error) {
	if !v.deps.Attachments.InUse(name) {
		return "", silent(errors.New("volume has not been added to the list of VolumesInUse in the node's volume status"))
	}
	devicePath, ok := v.deps.Attachments.Attached(name)
	if !ok {
		return "", silent(fmt.Errorf("volume %s is not yet in node's status", name))
	}
	return devicePath, nil
}

// markAttachable notes the name under which the volume is attached, "" where it is not. Its
// driver may say so only while the volume is waited for or used; then the controller is to
// detach it.
func (v *Volumes) markAttachable(d *device, s plugin.Spec, name v1.UniqueVolumeName) {
	if d == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	before := d.attachName
	d.attachName, d.attachSpec = name, s
	if name == "" {
		v.tellUnused(before)
	}
}

// reviewAttached asks again of the volumes that are attached whether they have to be.
func (v *Volumes) reviewAttached(ctx context.Context) {
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
			v.markAttachable(d, s, "")
		}
	}
}

// NodeChanged has the volumes that wait to be attached look at the node's status again.
func (v *Volumes) NodeChanged() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, d := range v.devices {
		if d.attachName == "" {
			continue
		}
		for uid, has := range d.users {
			if pv := v.pods[uid]; pv != nil && !has {
				pv.wakeWaiting()
			}
		}
	}
}

// InUse lists the attachable volumes that pods here use or that are not given back yet.
// While settled is false, an earlier agent may have left others.
func (v *Volumes) InUse() (names []v1.UniqueVolumeName, settled bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, d := range v.devices {
		if d.attachName != "" && !slices.Contains(names, d.attachName) {
			names = append(names, d.attachName)
		}
	}
	slices.Sort(names)
	v.settled = v.settled || v.housekept && v.allKnownLocked()
	return names, v.settled
}

// allKnownLocked reports whether every attachable volume that the disk shows was looked at.
func (v *Volumes) allKnownLocked() bool {
	for _, d := range v.devices {
		if _, attachable := d.kind.(plugin.Attacher); attachable && d.leaving && d.attachName == "" {
			return false // left by an earlier agent, under a name that only the API server knows
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
