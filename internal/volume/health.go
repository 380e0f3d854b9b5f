package volume

import (
	"context"
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/plugin"
)

// scheduleHealthLocked schedules health checks of a volume after its first attempt to mount, even if
// that failed: an unhealthy volume may never be mounted.
func (v *Volumes) scheduleHealthLocked(pv *podVolumes, name string, state *mountState) {
	if v.cfg.HealthPeriod <= 0 || state.healthScheduled || pv.unmounting.Err() != nil {
		return
	}
	claimed := false
	if vol := findVolume(pv.pod, name); vol != nil {
		_, claimed = pod.VolumeClaim(pv.pod, vol)
	}
	if !claimed && (!state.mounted || state.mountedVolume.spec.PV == nil) {
		return
	}
	state.healthScheduled = true
	v.scheduleLocked(volumeKey{pod: pv.pod.UID, volume: name, health: true}, v.deps.Clock.Now())
}

// checkHealth checks the health of a volume and schedules the next check. It does not lock the volume:
// its current operation may hang because it is unhealthy.
func (v *Volumes) checkHealth(ctx context.Context, pv *podVolumes, key volumeKey, state *mountState) {
	found, err := v.queryHealth(ctx, pv, key.volume, state)
	v.mu.Lock()
	changed, wait := false, v.cfg.HealthPeriod
	if !state.healthKnown {
		wait = v.jitteredPeriod(wait)
	}
	switch {
	case pv.unmounting.Err() != nil:
		v.mu.Unlock()
		return
	case err == nil:
		changed = !state.healthKnown || !slices.Equal(state.conditions, found)
		state.healthKnown, state.conditions = true, found
	case !errors.Is(err, plugin.ErrHealthUnknown): // keep the last conditions
		v.deps.Log.Debug("failed to check health of volume", "podUID", key.pod, "volume", key.volume, "err", err)
	}
	v.scheduleLocked(key, v.deps.Clock.Now().Add(wait))
	v.mu.Unlock()
	if changed && v.deps.Changed.Health != nil {
		v.deps.Changed.Health(key.pod)
	}
}

func (v *Volumes) queryHealth(ctx context.Context, pv *podVolumes, name string, state *mountState) ([]v1.VolumeHealthCondition, error) {
	v.mu.Lock()
	p, now, mounted := pv.pod, state.mountedVolume, state.mounted
	v.mu.Unlock()
	if !mounted {
		spec, err := v.resolve(ctx, p, findVolume(p, name))
		if err != nil {
			return nil, err
		}
		now = mountedVolume{spec: spec, kind: v.kindFor(spec)}
	}
	reporter, ok := now.kind.(plugin.HealthReporter)
	if !ok {
		return nil, plugin.ErrHealthUnknown
	}
	return reporter.Health(ctx, plugin.Request{Spec: now.spec, Pod: p, PodDir: v.podDir(p.UID)}, now.result)
}

// Health is the health of the pod's volumes. shown is the published one, which is kept for volumes that
// were not checked yet. nil means that no volume was checked.
func (v *Volumes) Health(uid types.UID, shown []v1.PodVolumeHealth) []v1.PodVolumeHealth {
	v.mu.Lock()
	defer v.mu.Unlock()
	pv := v.pods[uid]
	if pv == nil || v.cfg.HealthPeriod <= 0 {
		return nil
	}
	known, all := false, []v1.PodVolumeHealth{}
	for _, vol := range usedVolumes(pv.pod) {
		name := vol.Name
		before := v1.PodVolumeHealth{Name: name}
		if i := slices.IndexFunc(shown, func(h v1.PodVolumeHealth) bool { return h.Name == name }); i >= 0 {
			before = shown[i]
		}
		if state := pv.volumes[name]; state != nil && state.healthKnown {
			known = true
			before = withTransitionTime(before, state.conditions, metav1.NewTime(v.deps.Clock.Now()).Rfc3339Copy())
		}
		if len(before.HealthConditions) > 0 {
			all = append(all, before)
		}
	}
	if !known {
		return nil
	}
	return all
}

// withTransitionTime returns before if the conditions are unchanged, else the new ones with the time.
func withTransitionTime(before v1.PodVolumeHealth, found []v1.VolumeHealthCondition, now metav1.Time) v1.PodVolumeHealth {
	if slices.Equal(before.HealthConditions, found) {
		return before
	}
	return v1.PodVolumeHealth{Name: before.Name, HealthConditions: found, LastTransitionTime: now}
}
