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

// watchLocked begins to look after the health of a volume that was tried, whatever came of
// it: what is ill may never come up.
func (v *Volumes) watchLocked(pv *podVolumes, name string, state *mountState) {
	if v.cfg.HealthPeriod <= 0 || state.watched || pv.gone.Err() != nil {
		return
	}
	claimed := false
	if vol := findVolume(pv.pod, name); vol != nil {
		_, claimed = pod.VolumeClaim(pv.pod, vol)
	}
	if !claimed && (!state.mounted || state.up.spec.PV == nil) {
		return
	}
	state.watched = true
	v.scheduleLocked(volumeKey{pod: pv.pod.UID, volume: name, health: true}, v.deps.Clock.Now())
}

// examine looks how a volume fares, and will look again. It waits for no turn: the volume's
// own operation may hang for the very reason that is asked for.
func (v *Volumes) examine(ctx context.Context, pv *podVolumes, key volumeKey, state *mountState) {
	found, err := v.ask(ctx, pv, key.volume, state)
	v.mu.Lock()
	changed, wait := false, v.cfg.HealthPeriod
	if !state.examined {
		wait = v.firstWait(wait)
	}
	switch {
	case pv.gone.Err() != nil:
		v.mu.Unlock()
		return
	case err == nil:
		changed = !state.examined || !slices.Equal(state.ailments, found)
		state.examined, state.ailments = true, found
	case !errors.Is(err, plugin.ErrHealthUnknown): // no recovery: what was known stays
		v.deps.Log.Debug("the health of a volume is not known", "pod", key.pod, "volume", key.volume, "err", err)
	}
	v.scheduleLocked(key, v.deps.Clock.Now().Add(wait))
	v.mu.Unlock()
	if changed && v.deps.HealthChanged != nil {
		v.deps.HealthChanged(key.pod)
	}
}

func (v *Volumes) ask(ctx context.Context, pv *podVolumes, name string, state *mountState) ([]v1.VolumeHealthCondition, error) {
	v.mu.Lock()
	p, now, mounted := pv.pod, state.up, state.mounted
	v.mu.Unlock()
	if !mounted {
		spec, err := v.resolve(ctx, p, findVolume(p, name))
		if err != nil {
			return nil, err
		}
		now = up{spec: spec, kind: v.kindFor(spec)}
	}
	doctor, ok := now.kind.(plugin.HealthReporter)
	if !ok {
		return nil, plugin.ErrHealthUnknown
	}
	return doctor.Health(ctx, plugin.Request{Spec: now.spec, Pod: p, PodDir: v.podDir(p.UID)}, now.result)
}

// Health is what ails the pod's volumes, given what was shown of it before: what has not been
// looked at yet stays as it was shown. nil says that nothing is known.
func (v *Volumes) Health(uid types.UID, shown []v1.PodVolumeHealth) []v1.PodVolumeHealth {
	v.mu.Lock()
	defer v.mu.Unlock()
	pv := v.pods[uid]
	if pv == nil || v.cfg.HealthPeriod <= 0 {
		return nil
	}
	known, all := false, []v1.PodVolumeHealth{}
	for _, name := range wanted(pv.pod) {
		before := v1.PodVolumeHealth{Name: name}
		if i := slices.IndexFunc(shown, func(h v1.PodVolumeHealth) bool { return h.Name == name }); i >= 0 {
			before = shown[i]
		}
		if state := pv.volumes[name]; state != nil && state.examined {
			known = true
			before = since(before, state.ailments, metav1.NewTime(v.deps.Clock.Now()).Rfc3339Copy())
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

// since is what is shown of a volume from now on; the time is that of the last change.
func since(before v1.PodVolumeHealth, found []v1.VolumeHealthCondition, now metav1.Time) v1.PodVolumeHealth {
	if slices.Equal(before.HealthConditions, found) {
		return before
	}
	return v1.PodVolumeHealth{Name: before.Name, HealthConditions: found, LastTransitionTime: now}
}
