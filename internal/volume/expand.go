package volume

import (
	"context"
	"time"

	"swiftlet/internal/volume/plugin"
)

// sizePeriod is how often a claim in use is read to learn that its volume was made larger:
// a node may not watch it.
const sizePeriod = time.Minute

// firstWait is the time before a periodic look at a volume is repeated for the first time. It
// is a random part of the period: a new agent finds all volumes up at once, and must not look
// at all of them at once from then on.
func (v *Volumes) firstWait(period time.Duration) time.Duration {
	if v.deps.Jitter == nil {
		return period
	}
	return period - time.Duration(v.deps.Jitter()*float64(period))
}

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
