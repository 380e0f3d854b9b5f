package admit

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"swiftlet/internal/pod"
)

// ResizeRules say which running pods cannot be resized on this node at all.
type ResizeRules struct {
	// FixedCPU and FixedMemory name the policy, where there is one, by which guaranteed pods
	// have CPUs or memory of their own.
	FixedCPU, FixedMemory string
	// PodLevel lets the resources of the pod as a whole change.
	PodLevel bool
	// Swaps reports whether a container may use swap, which depends on its memory.
	Swaps func(*v1.Pod, *v1.Container) bool
}

// Infeasible says why the pod, whose allocated resources are those of allocated, can never have those
// of its spec; nil where it can. The reason is the one that metrics count.
func (r ResizeRules) Infeasible(p, allocated *v1.Pod) *pod.Rejection {
	if r.swapChanges(p, allocated) {
		return pod.Reject("swap_limitation", "In-place resize of containers with swap is not supported.")
	}
	if !r.PodLevel && !equality.Semantic.DeepEqual(p.Spec.Resources, allocated.Spec.Resources) {
		return pod.Reject("plr_feature_gate_off", "InPlacePodLevelResourcesVerticalScaling is disabled")
	}
	if pod.QOS(p) != v1.PodQOSGuaranteed {
		return nil
	}
	const fixed = "Resize is infeasible for Guaranteed Pods alongside %s Manager policy %q"
	switch {
	case r.FixedCPU != "" && requestsDiffer(p, allocated, v1.ResourceCPU):
		return pod.Reject("guaranteed_pod_cpu_manager_static_policy", fixed, "CPU", r.FixedCPU)
	case r.FixedMemory != "" && requestsDiffer(p, allocated, v1.ResourceMemory):
		return pod.Reject("guaranteed_pod_memory_manager_static_policy", fixed, "Memory", r.FixedMemory)
	}
	return nil
}

// swapChanges: a running container keeps the swap it began with, so what depends on its
// memory request may only change with a restart.
func (r ResizeRules) swapChanges(p, allocated *v1.Pod) bool {
	for c, kind := range pod.Containers(p) {
		has := pod.FindContainer(allocated, c.Name)
		if kind == pod.Ephemeral || has == nil || c.Resources.Requests.Memory().Equal(*has.Resources.Requests.Memory()) || restartsForMemory(has) {
			continue
		}
		if r.Swaps(p, c) || r.Swaps(allocated, has) {
			return true
		}
	}
	return false
}

func restartsForMemory(c *v1.Container) bool {
	for _, policy := range c.ResizePolicy {
		if policy.ResourceName == v1.ResourceMemory {
			return policy.RestartPolicy == v1.RestartContainer
		}
	}
	return false
}

func requestsDiffer(p, allocated *v1.Pod, name v1.ResourceName) bool {
	for c, kind := range pod.Containers(p) {
		has := pod.FindContainer(allocated, c.Name)
		if kind == pod.Ephemeral || has == nil {
			continue
		}
		if want := c.Resources.Requests[name]; !want.Equal(has.Resources.Requests[name]) {
			return true
		}
	}
	return false
}
