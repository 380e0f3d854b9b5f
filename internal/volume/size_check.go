package volume

import (
	"context"
	"time"

	"swiftlet/internal/volume/plugin"
)

// sizeCheckPeriod is how often the claim of a mounted volume is read for a new size: nodes may not
// watch claims.
const sizeCheckPeriod = time.Minute

// jitteredPeriod is the time until the first repetition of a periodic check, a random part of the
// period: after a restart all volumes are mounted at once, and their checks must not stay in step.
func (v *Volumes) jitteredPeriod(period time.Duration) time.Duration {
	if v.deps.Jitter == nil {
		return period
	}
	return period - time.Duration(v.deps.Jitter()*float64(period))
}

// expandable reports whether the volume can be expanded while it is mounted.
func expandable(u mountedVolume) bool {
	_, ok := u.kind.(plugin.Expander)
	return ok && u.spec.PVC != nil && !u.spec.ClaimReadOnly
}

// checkSize expands a mounted volume if its size has changed, and schedules the next check.
func (v *Volumes) checkSize(ctx context.Context, pv *podVolumes, key volumeKey, state *mountState) {
	err := v.checkSizeOnce(ctx, pv, key.volume, state)
	if err != nil && ctx.Err() == nil {
		v.recordFailure(pv, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if pv.unmounting.Err() == nil {
		v.scheduleLocked(key, v.deps.Clock.Now().Add(sizeCheckPeriod))
	}
}

// checkSizeOnce makes one attempt, with the volume and its device locked.
func (v *Volumes) checkSizeOnce(ctx context.Context, pv *podVolumes, name string, state *mountState) error {
	if err := state.acquire(ctx); err != nil {
		return err
	}
	defer state.release()
	release, err := pv.acquireSetUp(ctx)
	if err != nil {
		return err
	}
	defer release()
	v.mu.Lock()
	p, now, mounted := pv.pod, state.mountedVolume, state.mounted
	v.mu.Unlock()
	if !mounted || pv.unmounting.Err() != nil {
		return nil
	}
	spec, err := v.resolve(ctx, p, now.spec.Volume)
	if err != nil {
		v.deps.Log.Warn("failed to read size of volume", "podUID", p.UID, "volume", name, "err", err)
		return nil
	}
	r := plugin.Request{Spec: spec, Pod: p, PodDir: v.podDir(p.UID)}
	device, err := v.acquireDevice(ctx, now.kind, r)
	if err != nil {
		return nil // retried by the next check
	}
	defer device.release()
	r.DevicePath = v.devicePath(device)
	return v.expand(ctx, now.kind, r, now.result, device)
}
