package volume

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/pod"
)

// objectChanged is told of every change of a ConfigMap or Secret in use. It only notes
// which volumes show the object: Run, or a Mount that waits, does the work.
func (v *Volumes) objectChanged(kind, namespace, name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, pv := range v.pods {
		if pv.pod.Namespace != namespace {
			continue
		}
		v.hintLocked(pv, func(spec *v1.Volume) bool {
			uses := false
			kubeapi.VolumeReferences(spec, func(k, n string) { uses = uses || (k == kind && n == name) })
			return uses
		})
	}
}

// sourceChanged has the volumes looked at that show a source of the kind.
func (v *Volumes) sourceChanged(shows func(v1.VolumeProjection) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, pv := range v.pods {
		v.hintLocked(pv, func(vol *v1.Volume) bool {
			return vol.Projected != nil && slices.ContainsFunc(vol.Projected.Sources, shows)
		})
	}
}

func showsTrust(s v1.VolumeProjection) bool       { return s.ClusterTrustBundle != nil }
func showsCertificate(s v1.VolumeProjection) bool { return s.PodCertificate != nil }

// Update takes a changed pod; files that show its labels, annotations or resources follow.
// A pod that was never mounted is none of our business.
func (v *Volumes) Update(p *v1.Pod) {
	v.mu.Lock()
	defer v.mu.Unlock()
	pv := v.pods[p.UID]
	if pv == nil {
		return
	}
	old := pv.pod
	pv.pod = p
	if shown(old, p) {
		v.hintLocked(pv, pod.VolumeShowsPod)
	}
}

// hintLocked has the chosen volumes of a pod looked at now.
func (v *Volumes) hintLocked(pv *podVolumes, chosen func(*v1.Volume) bool) {
	for name, state := range pv.volumes {
		spec := findVolume(pv.pod, name)
		if spec == nil || !chosen(spec) {
			continue
		}
		state.hint.Notify()
		if state.mounted {
			v.scheduleLocked(volumeKey{pod: pv.pod.UID, volume: name}, v.deps.Clock.Now())
		}
	}
}

// shown reports whether two forms of a pod differ in what the downward API shows.
func shown(a, b *v1.Pod) bool {
	if !apiequality.Semantic.DeepEqual(a.Labels, b.Labels) || !apiequality.Semantic.DeepEqual(a.Annotations, b.Annotations) {
		return true
	}
	for c := range pod.Containers(a) {
		other := pod.FindContainer(b, c.Name)
		if other == nil || !apiequality.Semantic.DeepEqual(c.Resources, other.Resources) {
			return true
		}
	}
	return false
}

// refresh brings one mounted volume up to date. What cannot be refreshed stays as it is,
// is reported, and is tried again later.
func (v *Volumes) refresh(ctx context.Context, key volumeKey) {
	v.mu.Lock()
	pv := v.pods[key.pod]
	var state *mountState
	if pv != nil {
		state = pv.volumes[key.volume]
	}
	v.mu.Unlock()
	if state == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(pv.gone, cancel)()
	switch {
	case key.size:
		v.resize(ctx, pv, key, state)
		return
	case key.health:
		v.examine(ctx, pv, key, state)
		return
	}
	if _, err := v.setUp(ctx, pv, key.volume, state); err != nil && ctx.Err() == nil {
		v.tellFailure(pv, err)
		v.mu.Lock()
		defer v.mu.Unlock()
		if pv.gone.Err() == nil {
			v.scheduleLocked(key, v.deps.Clock.Now().Add(retries.After(state.failures)))
		}
	}
}
