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

// deviceKey names a device among those of all kinds.
type deviceKey struct{ kind, id string }

// device is something that several pods of the node may share: what a kind stages, or else
// a PersistentVolume. All but turn is guarded by Volumes.mu.
type device struct {
	id        string
	kind      plugin.Plugin
	stageable bool
	// attachName is the volume's name in the node's status, "" for one that is not attached
	// or not looked at yet.
	attachName v1.UniqueVolumeName
	attachSpec plugin.Spec // by which it was found
	// path is where a Connector found it.
	path string
	// turn holds a token while no operation runs on the device or a volume made from it.
	turn chan struct{}
	// users are the pods that want the device, and whether each has it.
	users  map[types.UID]bool
	staged bool
	// size is what the volume was seen to have on this node, nil before it was looked at.
	size *resource.Quantity
	// fixed volumes cannot grow while they are up. ungrown ones were tried, and failed.
	fixed, ungrown bool
	// leaving says that somebody is at work to unstage it.
	leaving bool
}

// release lets the next operation begin. A volume that shares nothing has no device.
func (d *device) release() {
	if d != nil {
		d.turn <- struct{}{}
	}
}

func (d *device) take(ctx context.Context) error {
	select {
	case <-d.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deviceOf names what a volume shares with other pods, "" for nothing.
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

// share waits for the turn of the volume's device and notes the pod as its user. The
// caller releases it.
func (v *Volumes) share(ctx context.Context, kind plugin.Plugin, r plugin.Request) (*device, error) {
	id, stageable, err := deviceOf(ctx, kind, r.Spec)
	if err != nil {
		return nil, unusable(r.Spec, err)
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
	if err := d.take(ctx); err != nil {
		return nil, setUpError(r.Name(), err)
	}
	if v.takenByAnother(d, r) {
		d.release()
		return nil, setUpError(r.Name(), errors.New("volume uses the ReadWriteOncePod access mode and is already in use by another pod"))
	}
	return d, nil
}

func (v *Volumes) deviceLocked(kind plugin.Plugin, id string, stageable bool) *device {
	key := deviceKey{kind.Name(), id}
	d := v.devices[key]
	if d == nil {
		d = &device{id: id, kind: kind, stageable: stageable, turn: make(chan struct{}, 1), users: map[types.UID]bool{}}
		d.turn <- struct{}{}
		v.devices[key] = d
	}
	return d
}

// takenByAnother reports whether the volume is for one pod alone and another one has it.
func (v *Volumes) takenByAnother(d *device, r plugin.Request) bool {
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

// leave notes that the pod has none of its devices any more. One that nobody else uses is
// unstaged, beside the caller: a driver that hangs there must not keep the pod.
func (v *Volumes) leave(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.unmatched[uid] {
		delete(v.unmatched, uid)
		v.beginOrphansLocked()
	}
	for key, d := range v.devices {
		if _, used := d.users[uid]; !used {
			continue
		}
		delete(d.users, uid)
		switch {
		case len(d.users) > 0 || d.leaving:
		case d.stageable:
			v.beginUnstageLocked(d)
		default:
			delete(v.devices, key)
			v.tellUnused(d.attachName)
		}
	}
}

// tellUnused says that a volume is in use no more, unless it was never attached.
func (v *Volumes) tellUnused(name v1.UniqueVolumeName) {
	if name != "" && v.deps.InUseChanged != nil {
		v.deps.InUseChanged()
	}
}

// beginOrphansLocked unstages what a pod left whose devices were not known.
func (v *Volumes) beginOrphansLocked() {
	if v.ended {
		return
	}
	v.operations.Go(func() {
		if err := v.UnstageOrphans(); err != nil {
			v.deps.Log.Warn("unstage volumes that no pod uses failed", "err", err)
		}
	})
}

func (v *Volumes) beginUnstageLocked(d *device) {
	if v.ended {
		return // the next agent finds it on the disk
	}
	d.leaving = true
	v.operations.Go(func() { v.unstageUntil(v.life, d) })
}

// unstageUntil tries until the device is unstaged, is used again or the agent ends. What
// keeps it is told once.
func (v *Volumes) unstageUntil(ctx context.Context, d *device) {
	told := ""
	retry := retries
	retry.Longest = longestUnstageWait
	for {
		v.mu.Lock()
		retried := v.retried // by what comes while the try is under way, too
		v.mu.Unlock()
		err := v.unstage(ctx, d)
		if err == nil || ctx.Err() != nil {
			return
		}
		if told != err.Error() {
			told = err.Error()
			v.deps.Log.Warn("a volume that no pod uses is still staged", "device", d.id, "err", err)
		}
		timer := v.deps.Clock.NewTimer(retry.Next())
		select {
		case <-timer.C():
		case <-retried:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// longestUnstageWait is the longest pause before another try: until it succeeds, the
// volume cannot be used on another node.
const longestUnstageWait = 30 * time.Second

// unstage makes one try, alone on the device.
func (v *Volumes) unstage(ctx context.Context, d *device) error {
	if err := d.take(ctx); err != nil {
		return err
	}
	defer d.release()
	v.mu.Lock()
	if len(d.users) > 0 {
		d.leaving = false
		v.mu.Unlock()
		return nil
	}
	d.size, d.fixed, d.ungrown = nil, false, false
	d.staged = false // even if it fails: whoever comes next has to look
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
	d.leaving = false
	if len(d.users) == 0 {
		delete(v.devices, deviceKey{d.kind.Name(), d.id})
		v.tellUnused(d.attachName)
	}
	return nil
}

// usedOnDisk reports whether a pod's directory still holds a volume made from the device: of a
// pod that an earlier agent mounted and this one has not looked at yet.
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

// usedBy reports whether the volume was made from the device. One whose device is not known
// holds only the devices that it may be made from: until it is gone, or its device known.
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
	return false, fmt.Errorf("volume %q of pod %s may be made from it: %w", p.Name, p.PodUID, err)
}

// UnstageOrphans begins to unstage what an earlier agent left staged for no pod. Call it
// when it is known which pods are wanted.
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
			if d := v.deviceLocked(kind, id, true); len(d.users) == 0 && !d.leaving {
				v.beginUnstageLocked(d)
			}
			v.mu.Unlock()
		}
	}
	err := errors.Join(errs...)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.housekept = v.housekept || err == nil
	return err
}
