package source

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"swiftlet/internal/pod"
)

// settle makes a new version of a pod ready to be stored. Nothing changes it afterwards.
func (s *apiStore) settle(p, old *v1.Pod) {
	if p == old {
		return
	}
	if old != nil && old.UID != p.UID {
		old = nil
	}
	if !pod.IsMirror(p) { // its annotations are those of its static pod
		seen := s.deps.Clock.Now().Format(time.RFC3339Nano)
		if old != nil {
			seen = old.Annotations[pod.AnnotationSeen]
		}
		p.Annotations = pod.WithOrigin(p.Annotations, pod.SourceAPI, seen)
	}
	shareOld(p, old)
	shareAmounts(p)
}

// shareOld lets a new version of a pod share what equals the old one. Other packages keep parts of the version that
// they have acted on, which would otherwise be in memory twice.
func shareOld(p, old *v1.Pod) {
	if old == nil {
		return
	}
	p.Namespace, p.Name, p.UID = old.Namespace, old.Name, old.UID
	if maps.Equal(p.Labels, old.Labels) {
		p.Labels = old.Labels
	}
	if maps.Equal(p.Annotations, old.Annotations) {
		p.Annotations = old.Annotations
	}
	// Equal specs may have amounts in different formats. The API server takes that for a new generation or ignores it.
	if p.Generation == old.Generation && equality.Semantic.DeepEqual(p.Spec, old.Spec) {
		p.Spec = old.Spec
	}
}

// shareAmounts lets the status share the amounts of the spec that equal its own: each of up to six maps takes 700
// bytes.
func shareAmounts(p *v1.Pod) {
	if s := p.Status.Resources; s != nil { // of a pod with one container they are the container's
		for c := range pod.Containers(p) {
			share(&s.Requests, c.Resources.Requests)
			share(&s.Limits, c.Resources.Limits)
		}
	}
	for c := range pod.Containers(p) {
		s := statusOf(&p.Status, c.Name)
		if s == nil {
			continue
		}
		share(&s.AllocatedResources, c.Resources.Requests)
		if s.Resources != nil {
			share(&s.Resources.Requests, c.Resources.Requests)
			share(&s.Resources.Limits, c.Resources.Limits)
		}
	}
}

func share(amounts *v1.ResourceList, of v1.ResourceList) {
	if maps.Equal(*amounts, of) { // with their format, which equal amounts may have different
		*amounts = of
	}
}

func statusOf(s *v1.PodStatus, name string) *v1.ContainerStatus {
	for _, list := range [][]v1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// trim frees the room that decoding has left in lists.
func trim(p *v1.Pod) {
	p.Status.Conditions = slices.Clone(p.Status.Conditions)
	p.Status.ContainerStatuses = slices.Clone(p.Status.ContainerStatuses)
}
