package source

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
)

func TestShareAmounts(t *testing.T) {
	amounts := func(cpu string) v1.ResourceList { return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)} }
	p := &v1.Pod{
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Resources: v1.ResourceRequirements{Requests: amounts("1"), Limits: amounts("2")}}, {Name: "new"}}},
		Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{
			{Name: "a", AllocatedResources: amounts("1000m"), Resources: &v1.ResourceRequirements{Requests: amounts("1"), Limits: amounts("3")}},
			{Name: "b", AllocatedResources: amounts("1")},
		}},
	}
	before := p.DeepCopy()
	shareAmounts(p)
	if diff := cmp.Diff(before, p); diff != "" {
		t.Errorf("the pod has changed: %s", diff)
	}
	spec, status := p.Spec.Containers[0].Resources, p.Status.ContainerStatuses[0]
	spec.Requests["shared"], spec.Limits["shared"] = resource.MustParse("1"), resource.MustParse("1")
	for _, c := range []struct {
		what   string
		of     v1.ResourceList
		shared bool
	}{
		{"equal requests", status.Resources.Requests, true},
		{"other limits", status.Resources.Limits, false},
		{"equal amounts in another format", status.AllocatedResources, false},
		{"those of another container", p.Status.ContainerStatuses[1].AllocatedResources, false},
	} {
		if _, shared := c.of["shared"]; shared != c.shared {
			t.Errorf("%s: shared %v, want %v", c.what, shared, c.shared)
		}
	}
}

func TestShareOld(t *testing.T) {
	old := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", Generation: 1, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "a"}}},
	}
	for _, c := range []struct {
		name         string
		change       func(*v1.Pod)
		spec, labels bool
	}{
		{"same", func(p *v1.Pod) { p.Status.Phase = v1.PodRunning }, true, true},
		{"other_generation", func(p *v1.Pod) { p.Generation = 2 }, false, true},
		{"other_spec", func(p *v1.Pod) { p.Spec.Containers[0].Image = "b" }, false, true},
		{"other_labels", func(p *v1.Pod) { p.Labels["a"] = "c" }, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := old.DeepCopy()
			c.change(p)
			want := p.DeepCopy()
			shareOld(p, old)
			if diff := cmp.Diff(want, p); diff != "" {
				t.Errorf("the pod has changed: %s", diff)
			}
			if shared := &p.Spec.Containers[0] == &old.Spec.Containers[0]; shared != c.spec {
				t.Errorf("the spec is shared: %v, want %v", shared, c.spec)
			}
			old.Labels["shared"] = ""
			if _, shared := p.Labels["shared"]; shared != c.labels {
				t.Errorf("labels are shared: %v, want %v", shared, c.labels)
			}
			delete(old.Labels, "shared")
		})
	}
}

// TestOriginOfPods: pods of the API server have the annotations for their source and for the time when they were first
// seen, whatever the API server has in them. Mirrors keep those of their static pods.
func TestOriginOfPods(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1e9, 0).UTC())
	s := &apiStore{pods: map[types.NamespacedName]*v1.Pod{}, changed: notify.New(), deps: APIDeps{Clock: clock}}
	put := func(uid types.UID, annotations map[string]string) map[string]string {
		clock.SetTime(clock.Now().Add(time.Second))
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: uid, Annotations: annotations}}
		if err := s.Update(p); err != nil {
			t.Fatal(err)
		}
		return s.pods[keyOf(p)].Annotations
	}
	forged := map[string]string{pod.AnnotationSource: "file", pod.AnnotationSeen: "never", "own": "kept"}
	first := map[string]string{pod.AnnotationSource: "api", pod.AnnotationSeen: "2001-09-09T01:46:41Z", "own": "kept"}
	second := map[string]string{pod.AnnotationSource: "api", pod.AnnotationSeen: "2001-09-09T01:46:43Z"}
	mirror := map[string]string{pod.AnnotationMirror: "hash", pod.AnnotationSource: "file"}
	for _, c := range []struct {
		name      string
		uid       types.UID
		has, want map[string]string
	}{
		{"new", "u", forged, first}, {"next_version", "u", forged, first}, {"another_pod", "v", nil, second}, {"mirror", "w", mirror, mirror},
	} {
		if diff := cmp.Diff(c.want, put(c.uid, c.has)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
