package admit

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func limits(pairs ...string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Containers[0].Resources.Limits = amounts(pairs...) }
}

func whole(pairs ...string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Resources = &v1.ResourceRequirements{Requests: amounts(pairs...)} }
}

// restartsFor has the container run anew when this resource changes.
func restartsFor(name v1.ResourceName) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: name, RestartPolicy: v1.RestartContainer}}
	}
}

func TestInfeasible(t *testing.T) {
	burstable := func(cpu, memory string, more ...func(*v1.Pod)) *v1.Pod {
		return newPod(append(more, requests("cpu", cpu, "memory", memory))...)
	}
	guaranteed := func(cpu, memory string) *v1.Pod {
		return newPod(requests("cpu", cpu, "memory", memory), limits("cpu", cpu, "memory", memory))
	}
	static := ResizeRules{FixedCPU: "static", FixedMemory: "Static", PodLevel: true}
	const swap = "In-place resize of containers with swap is not supported."
	for name, c := range map[string]struct {
		rules    ResizeRules
		p, given *v1.Pod
		swaps    bool
		want     string
	}{
		"nothing fixed":                       {p: guaranteed("2", "2Gi"), given: guaranteed("1", "1Gi")},
		"CPUs of its own":                     {rules: static, p: guaranteed("2", "1Gi"), given: guaranteed("1", "1Gi"), want: `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`},
		"memory of its own":                   {rules: static, p: guaranteed("1", "2Gi"), given: guaranteed("1", "1Gi"), want: `Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"`},
		"not guaranteed, so none of its own":  {rules: static, p: burstable("2", "2Gi"), given: burstable("1", "1Gi")},
		"memory does not touch CPUs":          {rules: ResizeRules{FixedCPU: "static"}, p: guaranteed("1", "2Gi"), given: guaranteed("1", "1Gi")},
		"swap depends on memory":              {swaps: true, p: burstable("1", "2Gi"), given: burstable("1", "1Gi"), want: swap},
		"swap does not depend on CPUs":        {swaps: true, p: burstable("2", "1Gi"), given: burstable("1", "1Gi")},
		"swap is given anew with a restart":   {swaps: true, p: burstable("1", "2Gi"), given: burstable("1", "1Gi", restartsFor(v1.ResourceMemory))},
		"a restart for CPUs does not give it": {swaps: true, p: burstable("1", "2Gi"), given: burstable("1", "1Gi", restartsFor(v1.ResourceCPU)), want: swap},
		"of the pod as a whole, not allowed":  {p: newPod(whole("cpu", "2")), given: newPod(whole("cpu", "1")), want: "InPlacePodLevelResourcesVerticalScaling is disabled"},
		"of the pod as a whole":               {rules: ResizeRules{PodLevel: true}, p: newPod(whole("cpu", "2")), given: newPod(whole("cpu", "1"))},
		"only a container's, without leave":   {p: burstable("2", "1Gi", whole("cpu", "4")), given: burstable("1", "1Gi", whole("cpu", "4"))},
	} {
		t.Run(name, func(t *testing.T) {
			c.rules.Swaps = func(*v1.Pod, *v1.Container) bool { return c.swaps }
			got := c.rules.Infeasible(c.p, c.given)
			if messageOf(got) != c.want || (reasonOf(got) == "") != (c.want == "") {
				t.Errorf("it says %+v, not %q", got, c.want)
			}
		})
	}
}
