package volume

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/pod"
)

// objectChanged is called for every change of a ConfigMap or Secret in use. It only marks the volumes
// with the object: Run, or a waiting Mount, does the work.
func (v *Volumes) objectChanged(kind, namespace, name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, pv := range v.pods {
		if pv.pod.Namespace != namespace {
			continue
		}
		v.refreshLocked(pv, func(spec *v1.Volume) bool {
			uses := false
			kubeapi.VolumeReferences(spec, func(k, n string) { uses = uses || (k == kind && n == name) })
			return uses
		})
	}
}

// sourceChanged refreshes projected volumes with a source for which shows is true.
func (v *Volumes) sourceChanged(shows func(v1.VolumeProjection) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, pv := range v.pods {
		v.refreshLocked(pv, func(vol *v1.Volume) bool {
			return vol.Projected != nil && slices.ContainsFunc(vol.Projected.Sources, shows)
		})
	}
}

func projectsTrustBundle(s v1.VolumeProjection) bool { return s.ClusterTrustBundle != nil }
func projectsCertificate(s v1.VolumeProjection) bool { return s.PodCertificate != nil }

// Update stores a changed pod and refreshes files with its labels, annotations or resources. It ignores
// a pod without mounted volumes.
func (v *Volumes) Update(p *v1.Pod) {
	v.mu.Lock()
	defer v.mu.Unlock()
	pv := v.pods[p.UID]
	if pv == nil {
		return
	}
	old := pv.pod
	pv.pod = p
	if downwardAPIChanged(old, p) {
		v.refreshLocked(pv, pod.VolumeShowsPod)
	}
}

// refreshLocked refreshes, or retries, the selected volumes of a pod.
func (v *Volumes) refreshLocked(pv *podVolumes, selected func(*v1.Volume) bool) {
	for i := range pv.pod.Spec.Volumes {
		spec := &pv.pod.Spec.Volumes[i]
		state := pv.volumes[spec.Name]
		if state == nil || !selected(spec) {
			continue
		}
		state.retryNow.Notify()
		if state.mounted {
			v.scheduleLocked(volumeKey{pod: pv.pod.UID, volume: spec.Name}, v.deps.Clock.Now())
		}
	}
}

// downwardAPIChanged reports whether two versions of a pod differ in what the downward API shows.
func downwardAPIChanged(a, b *v1.Pod) bool {
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

// refresh refreshes one mounted volume. A failure keeps the old content, is recorded as an event and
// retried.
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
	defer context.AfterFunc(pv.unmounting, cancel)()
	switch {
	case key.size:
		v.checkSize(ctx, pv, key, state)
		return
	case key.health:
		v.checkHealth(ctx, pv, key, state)
		return
	}
	if _, err := v.trySetUp(ctx, pv, key.volume, state); err != nil && ctx.Err() == nil {
		v.recordFailure(pv, err)
		v.mu.Lock()
		defer v.mu.Unlock()
		if pv.unmounting.Err() == nil {
			v.scheduleLocked(key, v.deps.Clock.Now().Add(retries.After(state.failures)))
		}
	}
}
