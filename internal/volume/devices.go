package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/volume/plugin"
)

// deviceKey identifies a device among those of all plugins.
type deviceKey struct{ kind, id string }

// device is shared by pods of the node: what a plugin stages, or else a PersistentVolume. All fields
// but lock are guarded by Volumes.mu.
type device struct {
	id        string
	kind      plugin.Plugin
	stageable bool
	// attachName is the volume's name in the node's status, "" if it is not attached or not known
	// yet.
	attachName v1.UniqueVolumeName
	attachSpec plugin.Spec // of attachName
	// path is the device path from Connector.
	path string
	// lock has a token while no operation runs on the device or one of its volumes.
	lock chan struct{}
	// users are the pods that use the device; the value is true once the volume is mounted.
	users  map[types.UID]bool
	staged bool
	// size is the size of the volume on this node, nil if unknown.
	size *resource.Quantity
	// noOnlineExpansion: the volume cannot be expanded while it is mounted. expansionFailed: the last
	// expansion failed.
	noOnlineExpansion, expansionFailed bool
	// unstaging is set while a goroutine unstages the device.
	unstaging bool
}

// release unlocks the device. d is nil for a volume without a device.
func (d *device) release() {
	if d != nil {
		d.lock <- struct{}{}
	}
}

func (d *device) acquire(ctx context.Context) error {
	select {
	case <-d.lock:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deviceOf is the device that a volume shares with other pods, "" for none.
func deviceOf(ctx context.Context, kind plugin.Plugin, spec plugin.Spec) (id string, stageable bool, err error) {
	if stager, ok := kind.(plugin.Stager); ok {
		if id, err = stager.DeviceID(ctx, spec); err != nil || id != "" {
			return id, true, err
		}
	}
	if spec.PV != nil {
		return "volume " + spec.PV.Name, false, nil
	}
	return "", false, nil
}

// acquireDevice locks the volume's device and adds the pod to its users. The caller releases it.
func (v *Volumes) acquireDevice(ctx context.Context, kind plugin.Plugin, r plugin.Request) (*device, error) {
	id, stageable, err := deviceOf(ctx, kind, r.Spec)
	if err != nil {
		return nil, initError(r.Spec, err)
	}
	if id == "" {
		return nil, nil
	}
	v.mu.Lock()
	d := v.deviceLocked(kind, id, stageable)
	if _, known := d.users[r.Pod.UID]; !known {
		d.users[r.Pod.UID] = false
	}
	v.mu.Unlock()
	if err := d.acquire(ctx); err != nil {
		return nil, setUpError(r.Name(), err)
	}
	if v.usedByOtherPod(d, r) {
		d.release()
		return nil, setUpError(r.Name(), errors.New("volume uses the ReadWriteOncePod access mode and is already in use by another pod"))
	}
	return d, nil
}

func (v *Volumes) deviceLocked(kind plugin.Plugin, id string, stageable bool) *device {
	key := deviceKey{kind.Name(), id}
	d := v.devices[key]
	if d == nil {
		d = &device{id: id, kind: kind, stageable: stageable, lock: make(chan struct{}, 1), users: map[types.UID]bool{}}
		d.lock <- struct{}{}
		v.devices[key] = d
	}
	return d
}

// usedByOtherPod reports whether the volume is ReadWriteOncePod and another pod has it.
func (v *Volumes) usedByOtherPod(d *device, r plugin.Request) bool {
	if r.PV == nil || !slices.Equal(r.PV.Spec.AccessModes, []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}) {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for uid, has := range d.users {
		if has && uid != r.Pod.UID {
			return true
		}
	}
	return false
}

func (v *Volumes) markUsed(d *device, uid types.UID) {
	if d == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	d.users[uid] = true
}

func (v *Volumes) isStaged(d *device) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return d.staged
}

func (v *Volumes) markStaged(d *device) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d.staged = true
}

// releaseDevices removes the pod from the users of its devices. A device without users is unstaged in
// the background: a driver that hangs there must not block the pod's teardown.
func (v *Volumes) releaseDevices(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.unknownDevices[uid] {
		delete(v.unknownDevices, uid)
		v.startUnstageOrphansLocked()
	}
	for key, d := range v.devices {
		if _, used := d.users[uid]; !used {
			continue
		}
		delete(d.users, uid)
		switch {
		case len(d.users) > 0 || d.unstaging:
		case d.stageable:
			v.startUnstageLocked(d)
		default:
			delete(v.devices, key)
			v.notifyInUseChanged(d.attachName)
		}
	}
}

// notifyInUseChanged reports that an attached volume is no longer in use.
func (v *Volumes) notifyInUseChanged(name v1.UniqueVolumeName) {
	if name != "" && v.deps.Changed.InUse != nil {
		v.deps.Changed.InUse()
	}
}

// startUnstageOrphansLocked unstages the devices of a pod whose devices were unknown.
func (v *Volumes) startUnstageOrphansLocked() {
	if v.stopped {
		return
	}
	v.operations.Go(func() {
		if err := v.deps.Panics.Call("volume", v.UnstageOrphans); err != nil {
			v.deps.Log.Warn("failed to unstage orphaned volumes", "err", err)
		}
	})
}

func (v *Volumes) startUnstageLocked(d *device) {
	if v.stopped {
		return // the next agent finds it on disk
	}
	d.unstaging = true
	v.operations.Go(func() { v.unstageWithRetry(v.lifetime, d) })
}

// unstageWithRetry retries until the device is unstaged, is used again or the agent ends. It logs each
// different error once.
func (v *Volumes) unstageWithRetry(ctx context.Context, d *device) {
	logged := ""
	retry := retries
	retry.Longest = maxUnstageRetry
	for {
		v.mu.Lock()
		retrySignal := v.retrySignal // read first: a Retry during the attempt counts, too
		v.mu.Unlock()
		err := v.deps.Panics.Call("volume", func() error { return v.unstage(ctx, d) }, "device", d.id)
		if err == nil || ctx.Err() != nil {
			return
		}
		if logged != err.Error() {
			logged = err.Error()
			v.deps.Log.Warn("failed to unstage volume", "device", d.id, "err", err)
		}
		timer := v.deps.Clock.NewTimer(retry.Next())
		select {
		case <-timer.C():
		case <-retrySignal:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// maxUnstageRetry is the longest delay between attempts: until one succeeds, the volume cannot be used
// on another node.
const maxUnstageRetry = 30 * time.Second

// unstage makes one attempt, with the device locked.
func (v *Volumes) unstage(ctx context.Context, d *device) error {
	if err := d.acquire(ctx); err != nil {
		return err
	}
	defer d.release()
	v.mu.Lock()
	if len(d.users) > 0 {
		d.unstaging = false
		v.mu.Unlock()
		return nil
	}
	d.size, d.noOnlineExpansion, d.expansionFailed = nil, false, false
	d.staged = false // even if it fails: the next Stage has to check
	v.mu.Unlock()

	stager := d.kind.(plugin.Stager)
	used, err := v.usedOnDisk(d.kind, stager, d.id)
	if err != nil {
		return err
	}
	if !used {
		if err := stager.Unstage(ctx, d.id); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	d.unstaging = false
	if len(d.users) == 0 {
		delete(v.devices, deviceKey{d.kind.Name(), d.id})
		v.notifyInUseChanged(d.attachName)
	}
	return nil
}

// usedOnDisk reports whether a pod's directory has a volume of the device: of a pod that an earlier
// agent mounted and this one does not know yet.
func (v *Volumes) usedOnDisk(kind plugin.Plugin, stager plugin.Stager, id string) (bool, error) {
	uids, err := v.PodDirs()
	if err != nil {
		return false, err
	}
	for _, uid := range uids {
		all, err := v.published(uid, kind)
		if err != nil {
			return false, err
		}
		for _, p := range all {
			if used, err := usedBy(p, stager, id); err != nil || used {
				return used, err
			}
		}
	}
	return false, nil
}

// usedBy reports whether the volume uses the device. A volume whose device is unknown blocks all
// devices that it may use, until it is unmounted or its device is known.
func usedBy(p plugin.Published, stager plugin.Stager, id string) (bool, error) {
	of, err := stager.DeviceOf(p)
	if err == nil {
		return of == id, nil
	}
	if matcher, ok := stager.(plugin.DeviceMatcher); ok {
		may, mayErr := matcher.MayUse(p, id)
		if mayErr == nil && !may {
			return false, nil
		}
		err = errors.Join(err, mayErr)
	}
	return false, fmt.Errorf("find device of volume %q of pod %s: %w", p.Name, p.PodUID, err)
}

// UnstageOrphans starts to unstage the devices that an earlier agent staged and no pod uses. Call it
// when all desired pods are known.
func (v *Volumes) UnstageOrphans() error {
	var errs []error
	for _, kind := range v.kinds() {
		stager, ok := kind.(plugin.Stager)
		if !ok {
			continue
		}
		ids, err := stager.Staged()
		errs = append(errs, err)
		for _, id := range ids {
			used, err := v.usedOnDisk(kind, stager, id)
			if errs = append(errs, err); used || err != nil {
				continue
			}
			v.mu.Lock()
			if d := v.deviceLocked(kind, id, true); len(d.users) == 0 && !d.unstaging {
				v.startUnstageLocked(d)
			}
			v.mu.Unlock()
		}
	}
	err := errors.Join(errs...)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.orphansUnstaged = v.orphansUnstaged || err == nil
	return err
}
