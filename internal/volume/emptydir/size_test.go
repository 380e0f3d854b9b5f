package emptydir

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func podRequesting(resources ...v1.ResourceName) *v1.Pod {
	p := &v1.Pod{}
	for _, name := range resources {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{name: resource.MustParse("4Mi")}}})
	}
	return p
}

func TestPageSize(t *testing.T) {
	for _, c := range []struct {
		name      string
		medium    v1.StorageMedium
		pod       *v1.Pod
		want, err string
	}{
		{"one size requested", "HugePages", podRequesting("hugepages-2Mi", "cpu"), "2Mi", ""},
		{"one size requested twice", "HugePages", podRequesting("hugepages-2Mi", "hugepages-2Mi"), "2Mi", ""},
		{"two sizes requested", "HugePages", podRequesting("hugepages-2Mi", "hugepages-1Gi"), "", "medium: HugePages can't be used if container requests multiple huge page sizes"},
		{"medium selects one of two sizes", "HugePages-1Gi", podRequesting("hugepages-2Mi", "hugepages-1Gi"), "1Gi", ""},
		{"size of medium not requested", "HugePages-1Gi", podRequesting("hugepages-2Mi"), "", "medium HugePages-1Gi: hugePages storage requested, but there is no resource request for huge pages"},
		{"no huge pages requested", "HugePages", podRequesting("cpu"), "", "medium HugePages: hugePages storage requested, but there is no resource request for huge pages"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := pageSize(c.medium, c.pod)
			if got != c.want || (err == nil) != (c.err == "") || (err != nil && err.Error() != c.err) {
				t.Errorf("%q, %v; want %q, %q", got, err, c.want, c.err)
			}
		})
	}
}

func TestPodMemoryLimit(t *testing.T) {
	limited := func(q string) v1.Container {
		return v1.Container{Resources: v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse(q)}}}
	}
	for _, c := range []struct {
		name string
		spec v1.PodSpec
		want int64
	}{
		{"best-effort pod", v1.PodSpec{Containers: []v1.Container{{}}}, 0},
		{"all containers limited", v1.PodSpec{Containers: []v1.Container{limited("1Mi"), limited("2Mi")}}, 3 << 20},
		{"one container unlimited", v1.PodSpec{Containers: []v1.Container{limited("1Mi"), {}}}, 0},
		{"init container unlimited", v1.PodSpec{InitContainers: []v1.Container{{}}, Containers: []v1.Container{limited("1Mi")}}, 0},
		{"larger init container", v1.PodSpec{InitContainers: []v1.Container{limited("8Mi")}, Containers: []v1.Container{limited("1Mi")}}, 8 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := podMemoryLimit(&v1.Pod{Spec: c.spec}); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
