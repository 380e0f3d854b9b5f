package source

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	if _, err := asPod(p); err != nil {
		t.Fatal(err)
	}
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
