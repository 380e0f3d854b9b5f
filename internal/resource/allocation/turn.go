package allocation

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// Turn compares pods whose resize waits: those that ask for no more than they have come
// first, then the more important, then guaranteed ones, then those that wait for longer.
func (a *Allocator) Turn(p, q *v1.Pod) int {
	return cmp.Or(
		cmp.Compare(a.grows(p), a.grows(q)),
		cmp.Compare(priority(q), priority(p)),
		cmp.Compare(unguaranteed(p), unguaranteed(q)),
		cmp.Compare(since(p), since(q)),
	)
}

// grows is 1 for a pod that requests more than it was given.
func (a *Allocator) grows(p *v1.Pod) int {
	given, _ := a.Given(p)
	have := resourcehelper.PodRequests(given, resourcehelper.PodResourcesOptions{})
	want := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
	if want.Cpu().Cmp(*have.Cpu()) > 0 || want.Memory().Cmp(*have.Memory()) > 0 {
		return 1
	}
	return 0
}

func priority(p *v1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

func unguaranteed(p *v1.Pod) int {
	if pod.QOS(p) == v1.PodQOSGuaranteed {
		return 0
	}
	return 1
}

// since is when the pod's status first said that it waits; one that does not say it yet
// has waited least.
func since(p *v1.Pod) int64 {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodResizePending {
			return c.LastTransitionTime.UnixNano()
		}
	}
	return 1<<63 - 1
}
