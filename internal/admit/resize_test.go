package admit

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/test/cputime"
)

func limits(pairs ...string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Containers[0].Resources.Limits = amounts(pairs...) }
}

func podLevel(pairs ...string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Resources = &v1.ResourceRequirements{Requests: amounts(pairs...)} }
}

// restartsFor restarts the container when this resource changes.
func restartsFor(name v1.ResourceName) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: name, RestartPolicy: v1.RestartContainer}}
	}
}

func TestInfeasibleResizes(t *testing.T) {
	burstable := func(cpu, memory string, more ...func(*v1.Pod)) *v1.Pod {
		return newPod(append(more, requests("cpu", cpu, "memory", memory))...)
	}
	guaranteed := func(cpu, memory string) *v1.Pod {
		return newPod(requests("cpu", cpu, "memory", memory), limits("cpu", cpu, "memory", memory))
	}
	static := ResizeRules{StaticCPUPolicy: "static", StaticMemoryPolicy: "Static", PodLevel: true}
	const swap = "In-place resize of containers with swap is not supported."
	for name, c := range map[string]struct {
		rules        ResizeRules
		p, allocated *v1.Pod
		swaps        bool
		want         string
	}{
		"no_static_policies":                        {p: guaranteed("2", "2Gi"), allocated: guaranteed("1", "1Gi")},
		"guaranteed_cpu_with_static_policy":         {rules: static, p: guaranteed("2", "1Gi"), allocated: guaranteed("1", "1Gi"), want: `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`},
		"guaranteed_memory_with_static_policy":      {rules: static, p: guaranteed("1", "2Gi"), allocated: guaranteed("1", "1Gi"), want: `Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"`},
		"burstable_with_static_policies":            {rules: static, p: burstable("2", "2Gi"), allocated: burstable("1", "1Gi")},
		"guaranteed_memory_with_static_cpu_policy":  {rules: ResizeRules{StaticCPUPolicy: "static"}, p: guaranteed("1", "2Gi"), allocated: guaranteed("1", "1Gi")},
		"memory_with_swap":                          {swaps: true, p: burstable("1", "2Gi"), allocated: burstable("1", "1Gi"), want: swap},
		"cpu_with_swap":                             {swaps: true, p: burstable("2", "1Gi"), allocated: burstable("1", "1Gi")},
		"memory_with_swap_and_restart":              {swaps: true, p: burstable("1", "2Gi"), allocated: burstable("1", "1Gi", restartsFor(v1.ResourceMemory))},
		"memory_with_swap_and_restart_for_cpu_only": {swaps: true, p: burstable("1", "2Gi"), allocated: burstable("1", "1Gi", restartsFor(v1.ResourceCPU)), want: swap},
		"pod_level_disabled":                        {p: newPod(podLevel("cpu", "2")), allocated: newPod(podLevel("cpu", "1")), want: "InPlacePodLevelResourcesVerticalScaling is disabled"},
		"pod_level_enabled":                         {rules: ResizeRules{PodLevel: true}, p: newPod(podLevel("cpu", "2")), allocated: newPod(podLevel("cpu", "1"))},
		"container_only_with_pod_level_disabled":    {p: burstable("2", "1Gi", podLevel("cpu", "4")), allocated: burstable("1", "1Gi", podLevel("cpu", "4"))},
	} {
		t.Run(name, func(t *testing.T) {
			c.rules.MayUseSwap = func(*v1.Pod, *v1.Container) bool { return c.swaps }
			got := c.rules.Infeasible(c.p, c.allocated)
			if messageOf(got) != c.want || (reasonOf(got) == "") != (c.want == "") {
				t.Errorf("got %+v, want %q", got, c.want)
			}
		})
	}
}

func TestResizeOfManyContainersIsCheckedQuickly(t *testing.T) {
	p := &v1.Pod{}
	for i := range 20000 {
		both := amounts("cpu", "1m", "memory", "1")
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{
			Name: fmt.Sprint("c", i), Resources: v1.ResourceRequirements{Requests: both, Limits: both},
		})
	}
	rules := ResizeRules{StaticCPUPolicy: "static", StaticMemoryPolicy: "Static"}
	cputime.AtMost(t, 2*time.Second, func() {
		if r := rules.Infeasible(p, p.DeepCopy()); r != nil {
			t.Errorf("%v", r)
		}
	})
}
