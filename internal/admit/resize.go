package admit

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"swiftlet/internal/pod"
)

// ResizeRules decide which resizes of running pods are infeasible on this node.
type ResizeRules struct {
	// StaticCPUPolicy and StaticMemoryPolicy name the policy that allocates exclusive CPUs or
	// memory to guaranteed pods; empty if there is none.
	StaticCPUPolicy, StaticMemoryPolicy string
	// PodLevel allows to resize pod-level resources.
	PodLevel bool
	// MayUseSwap reports whether a container may use swap, which depends on its memory request.
	MayUseSwap func(*v1.Pod, *v1.Container) bool
}

// Infeasible returns why the pod can never get the resources of its spec in place of those of
// allocated, or nil. The reason is a label value of metrics.
func (r ResizeRules) Infeasible(p, allocated *v1.Pod) *pod.Rejection {
	if r.changesSwap(p, allocated) {
		return pod.Reject("swap_limitation", "In-place resize of containers with swap is not supported.")
	}
	if !r.PodLevel && !equality.Semantic.DeepEqual(p.Spec.Resources, allocated.Spec.Resources) {
		return pod.Reject("plr_feature_gate_off", "InPlacePodLevelResourcesVerticalScaling is disabled")
	}
	if pod.QOS(p) != v1.PodQOSGuaranteed {
		return nil
	}
	const message = "Resize is infeasible for Guaranteed Pods alongside %s Manager policy %q"
	switch {
	case r.StaticCPUPolicy != "" && requestsDiffer(p, allocated, v1.ResourceCPU):
		return pod.Reject("guaranteed_pod_cpu_manager_static_policy", message, "CPU", r.StaticCPUPolicy)
	case r.StaticMemoryPolicy != "" && requestsDiffer(p, allocated, v1.ResourceMemory):
		return pod.Reject("guaranteed_pod_memory_manager_static_policy", message, "Memory", r.StaticMemoryPolicy)
	}
	return nil
}

// changesSwap reports whether the resize changes the memory request of a container that may
// use swap, without restarting it. The swap limit of a running container does not change.
func (r ResizeRules) changesSwap(p, allocated *v1.Pod) bool {
	before := byName(allocated)
	for c, kind := range pod.Containers(p) {
		current := before[c.Name]
		if kind == pod.Ephemeral || current == nil || c.Resources.Requests.Memory().Equal(*current.Resources.Requests.Memory()) || restartsForMemory(current) {
			continue
		}
		if r.MayUseSwap(p, c) || r.MayUseSwap(allocated, current) {
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
	before := byName(allocated)
	for c, kind := range pod.Containers(p) {
		current := before[c.Name]
		if kind == pod.Ephemeral || current == nil {
			continue
		}
		if want := c.Resources.Requests[name]; !want.Equal(current.Resources.Requests[name]) {
			return true
		}
	}
	return false
}

// byName returns the containers by name. A pod may have many, and the sync loop, which serves all pods, compares
// them.
func byName(p *v1.Pod) map[string]*v1.Container {
	all := make(map[string]*v1.Container, len(p.Spec.Containers))
	for c := range pod.Containers(p) {
		all[c.Name] = c
	}
	return all
}
