package admit

import (
	"slices"
	"strings"
	"weak"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// reportedFirst are reported before all others, in this order.
var reportedFirst = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}

// findShortages returns the resources that the node has too little of for the pod in addition
// to the others.
func (u *usage) findShortages(p *v1.Pod, node *v1.Node, others []*v1.Pod) []Shortage {
	allocatable := node.Status.Allocatable
	var shortages []Shortage
	if pods := allocatable.Pods().Value(); int64(len(others))+1 > pods {
		shortages = append(shortages, Shortage{v1.ResourcePods, 1, int64(len(others)), pods})
	}
	requests := resourcehelper.PodRequests(withoutUnknown(p, allocatable), resourcehelper.PodResourcesOptions{})
	used := u.of(others)
	for _, name := range order(requests) {
		requested := units(name, requests)
		if requested == 0 || name == v1.ResourcePods {
			continue
		}
		s := Shortage{name, requested, units(name, used), units(name, allocatable)}
		if s.Missing() > 0 {
			shortages = append(shortages, s)
		}
	}
	return shortages
}

// usage sums the resources that pods use. It keeps what each pod requests, because it is asked for each new
// pod. Pods are not changed but replaced, so a version of a pod is known by its address.
type usage struct{ requests map[types.UID]podRequests }

// podRequests are those of one version of a pod. They do not keep it in memory.
type podRequests struct {
	of  weak.Pointer[v1.Pod]
	all []request
}

type request struct {
	name   v1.ResourceName
	amount resource.Quantity
}

// of sums the resources of pods. While a pod is being resized it counts with the larger of its actual and
// its allocated resources.
func (u *usage) of(pods []*v1.Pod) v1.ResourceList {
	if len(u.requests) > 2*len(pods) { // most are of pods that have ended
		u.requests = nil
	}
	if u.requests == nil {
		u.requests = make(map[types.UID]podRequests, len(pods))
	}
	sum := v1.ResourceList{}
	for _, p := range pods {
		known, version := u.requests[p.UID], weak.Make(p)
		if known.of != version {
			known = podRequests{version, requestsOf(p)}
			u.requests[p.UID] = known
		}
		for _, r := range known.all {
			total := sum[r.name]
			total.Add(r.amount)
			sum[r.name] = total
		}
	}
	return sum
}

func requestsOf(p *v1.Pod) (all []request) {
	for name, amount := range resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}) {
		all = append(all, request{name, amount})
	}
	return all
}

// withoutUnknown removes extended resources that this node does not have, which are either
// cluster-level or allocated by resource claims, and those that the pod has a claim for.
func withoutUnknown(p *v1.Pod, allocatable v1.ResourceList) *v1.Pod {
	p = p.DeepCopy()
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			requests := list[i].Resources.Requests
			for name := range requests {
				_, known := allocatable[name]
				if isExtended(name) && !known || claimable(name) && pod.FromResourceClaim(p, list[i].Name, name) {
					delete(requests, name)
				}
			}
		}
	}
	return p
}

// claimable reports whether a resource claim may replace the resource: an extended resource or
// a device class.
func claimable(name v1.ResourceName) bool {
	return isExtended(name) || strings.HasPrefix(string(name), resourceapi.ResourceDeviceClassPrefix)
}

// isExtended reports whether the name has a domain outside kubernetes.io.
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
		if !slices.Contains(reportedFirst, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return append(slices.Clone(reportedFirst), rest...)
}
