package admit

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func withRequests(name, cpu string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("1Mi")},
		}}}},
	}
}

// TestUsageFollowsPods: what was summed before neither counts a pod that has gone, nor hides that a pod was
// replaced by a newer version.
func TestUsageFollowsPods(t *testing.T) {
	u := &usage{}
	a, b, a2 := withRequests("a", "100m"), withRequests("b", "0.5m"), withRequests("a", "250m")
	for i, step := range []struct {
		pods []*v1.Pod
		want string
	}{
		{nil, "0"}, {[]*v1.Pod{a, b}, "101m"}, {[]*v1.Pod{a, b, b}, "101m"}, {[]*v1.Pod{b, a2}, "251m"}, {[]*v1.Pod{b}, "1m"}, {nil, "0"}, {[]*v1.Pod{a}, "100m"},
	} {
		got := u.of(step.pods)
		if want := resource.MustParse(step.want); got.Cpu().MilliValue() != want.MilliValue() {
			t.Errorf("step %d: pods use %s CPUs, want %s", i, got.Cpu(), step.want)
		}
		if len(u.requests) > 2*len(step.pods)+len(step.pods) {
			t.Errorf("step %d: %d pods are kept for %d", i, len(u.requests), len(step.pods))
		}
	}
}

// BenchmarkFit checks a pod on a node with few and with many others.
func BenchmarkFit(b *testing.B) {
	node := &v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("100"), v1.ResourceMemory: resource.MustParse("100Gi"), v1.ResourcePods: resource.MustParse("2000"),
	}}}
	for _, count := range []int{10, 1000} {
		b.Run(fmt.Sprint(count, " pods"), func(b *testing.B) {
			check := Fit(func() (*v1.Node, error) { return node, nil }, nil)
			var others []*v1.Pod
			for i := range count {
				others = append(others, withRequests(fmt.Sprint("other-", i), "1m"))
			}
			p := withRequests("new", "1m")
			b.ReportAllocs()
			for b.Loop() {
				if rejection := check(p, others); rejection != nil {
					b.Fatal(rejection)
				}
			}
		})
	}
}
