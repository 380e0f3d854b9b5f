package volume

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/plugin"
)

// Grown is told that a claim's volume now has all of size; the claim's status shows it.
type Grown interface {
	Grown(ctx context.Context, c *v1.PersistentVolumeClaim, size resource.Quantity) error
}

// sizePeriod is how often a claim in use is read to learn that its volume was made larger:
// a node may not watch it.
const sizePeriod = time.Minute

// growing reports whether the volume may become larger while it is up.
func growing(u up) bool {
	_, ok := u.kind.(plugin.Expander)
	return ok && u.spec.PVC != nil && !u.spec.ClaimReadOnly
}

// resize looks whether a volume that is up was made larger, and will look again.
func (v *Volumes) resize(ctx context.Context, pv *podVolumes, key volumeKey, state *mountState) {
	err := v.tryResize(ctx, pv, key.volume, state)
	if err != nil && ctx.Err() == nil {
		v.tellFailure(pv, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if pv.gone.Err() == nil {
		v.scheduleLocked(key, v.deps.Clock.Now().Add(sizePeriod))
	}
}

// tryResize makes one try, alone on the volume and its device.
func (v *Volumes) tryResize(ctx context.Context, pv *podVolumes, name string, state *mountState) error {
	if err := state.take(ctx); err != nil {
		return err
	}
	defer state.release()
	v.mu.Lock()
	p, now, mounted := pv.pod, state.up, state.mounted
	v.mu.Unlock()
	if !mounted || pv.gone.Err() != nil {
		return nil
	}
	spec, err := v.resolve(ctx, p, now.spec.Volume)
	if err != nil {
		v.deps.Log.Warn("the size of a volume is not known", "pod", p.UID, "volume", name, "err", err)
		return nil
	}
	r := plugin.Request{Spec: spec, Pod: p, PodDir: v.podDir(p.UID)}
	device, err := v.share(ctx, now.kind, r)
	if err != nil {
		return nil // another volume holds the device; the next look will do
	}
	defer device.release()
	r.DevicePath = v.devicePath(device)
	return v.expand(ctx, now.kind, r, now.result, device)
}

// expand has a volume that was made larger use all of its size. The caller has the device's
// turn.
func (v *Volumes) expand(ctx context.Context, kind plugin.Plugin, r plugin.Request, at plugin.Result, d *device) error {
	expander, ok := kind.(plugin.Expander)
	if !ok || r.PVC == nil || r.ClaimReadOnly {
		return nil
	}
	want, shown := r.PV.Spec.Capacity.Storage(), r.PVC.Status.Capacity.Storage()
	if want.Cmp(v.sizeHere(d, *shown)) <= 0 {
		return nil
	}
	if err := expander.Expand(ctx, r, at, *want); err != nil {
		return failed(reasonExpand, stepOf(r.Spec)+".NodeExpandVolume", r.Name(), err)
	}
	// Another node may have been the first.
	if grown, ok := v.deps.Claims.(Grown); ok && want.Cmp(*shown) > 0 {
		if err := grown.Grown(ctx, r.PVC, *want); err != nil {
			return failed(reasonExpand, stepOf(r.Spec)+".NodeExpandVolume", r.Name(), err)
		}
	}
	v.setSizeHere(d, *want)
	v.deps.Events.Eventf(pod.EventRef(r.Pod, ""), v1.EventTypeNormal, "FileSystemResizeSuccessful",
		"%s.NodeExpandVolume succeeded for volume %q ", stepOf(r.Spec), r.Name())
	return nil
}

// sizeHere is the size that the volume is known to have on this node. The claim shows what
// it has on the node that was first to have it grow, which need not be this one; so it
// counts only when the volume comes up.
func (v *Volumes) sizeHere(d *device, shown resource.Quantity) resource.Quantity {
	v.mu.Lock()
	defer v.mu.Unlock()
	if d.size == nil {
		d.size = &shown
	}
	return *d.size
}

func (v *Volumes) setSizeHere(d *device, size resource.Quantity) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d.size = &size
}
