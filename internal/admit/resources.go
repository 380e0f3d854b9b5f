package admit

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// leading are reported before all others, in this order.
var leading = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}

// shortages are the resources that the node cannot give the pod beside the others.
func shortages(p *v1.Pod, node *v1.Node, others []*v1.Pod) []Shortage {
	free := node.Status.Allocatable
	var lacking []Shortage
	if pods := free.Pods().Value(); int64(len(others))+1 > pods {
		lacking = append(lacking, Shortage{v1.ResourcePods, 1, int64(len(others)), pods})
	}
	requests := resourcehelper.PodRequests(withoutUnknown(p, free), resourcehelper.PodResourcesOptions{})
	used := usedBy(others)
	for _, name := range order(requests) {
		requested := units(name, requests)
		if requested == 0 || name == v1.ResourcePods {
			continue
		}
		s := Shortage{name, requested, units(name, used), units(name, free)}
		if s.Missing() > 0 {
			lacking = append(lacking, s)
		}
	}
	return lacking
}

// usedBy sums what running pods hold: while a pod is being resized, the larger of what it
// has and what it was promised.
func usedBy(pods []*v1.Pod) v1.ResourceList {
	sum := v1.ResourceList{}
	opts := resourcehelper.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}
	for _, p := range pods {
		for name, amount := range resourcehelper.PodRequests(p, opts) {
			total := sum[name]
			total.Add(amount)
			sum[name] = total
		}
	}
	return sum
}

// withoutUnknown leaves out extended resources that this node does not have: those are
// either the whole cluster's, or given out as resource claims.
func withoutUnknown(p *v1.Pod, free v1.ResourceList) *v1.Pod {
	p = p.DeepCopy()
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			requests := list[i].Resources.Requests
			for name := range requests {
				_, known := free[name]
				if isExtended(name) && !known || claimable(name) && pod.FromResourceClaim(p, list[i].Name, name) {
					delete(requests, name)
				}
			}
		}
	}
	return p
}

// claimable: what a claim may stand for, by its own name or by that of a device class.
func claimable(name v1.ResourceName) bool {
	return isExtended(name) || strings.HasPrefix(string(name), resourceapi.ResourceDeviceClassPrefix)
}

// isExtended: a name with a domain that is not Kubernetes' own.
func isExtended(name v1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(string(name), v1.DefaultResourceRequestsPrefix)
}

func units(name v1.ResourceName, list v1.ResourceList) int64 {
	amount := list[name]
	if name == v1.ResourceCPU {
		return amount.MilliValue()
	}
	return amount.Value()
}

func order(list v1.ResourceList) []v1.ResourceName {
	var rest []v1.ResourceName
	for name := range list {
		if !slices.Contains(leading, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return append(slices.Clone(leading), rest...)
}
