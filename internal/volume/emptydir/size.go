package emptydir

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// memorySize is the size of a tmpfs: the minimum of the node's allocatable memory, the pod's memory
// limit and the volume's size limit, as far as they are set.
func memorySize(p *v1.Pod, limit *resource.Quantity, allocatable v1.ResourceList) int64 {
	size := allocatable.Memory().Value()
	if podLimit := podMemoryLimit(p); podLimit > 0 && (size == 0 || podLimit <= size) {
		size = podLimit
	}
	if limit != nil {
		if own := limit.Value(); own > 0 && (size == 0 || own <= size) {
			size = own
		}
	}
	return size
}

// podMemoryLimit is the memory limit of the pod's cgroup: 0 unless every container has a limit.
func podMemoryLimit(p *v1.Pod) int64 {
	if pod.QOS(p) == v1.PodQOSBestEffort {
		return 0
	}
	if p.Spec.Resources == nil || p.Spec.Resources.Limits.Memory().IsZero() {
		for c, kind := range pod.Containers(p) {
			if kind != pod.Ephemeral && c.Resources.Limits.Memory().IsZero() {
				return 0
			}
		}
	}
	limits := helpers.PodLimits(p, helpers.PodResourcesOptions{})
	return limits.Memory().Value()
}

// pageSize is the size of the huge pages to mount: that of the medium, which a container must
// request, or the only one that containers request.
func pageSize(medium v1.StorageMedium, p *v1.Pod) (string, error) {
	var named *resource.Quantity
	if medium != v1.StorageMediumHugePages {
		size, err := resource.ParseQuantity(strings.TrimPrefix(string(medium), string(v1.StorageMediumHugePagesPrefix)))
		if err != nil {
			return "", fmt.Errorf("medium %s: read page size: %w", medium, err)
		}
		named = &size
	}
	var found *resource.Quantity
	for _, requests := range allRequests(p) {
		for name := range requests {
			text, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
			if !ok {
				continue
			}
			size, err := resource.ParseQuantity(text)
			if err != nil {
				return "", fmt.Errorf("read page size of resource %s: %w", name, err)
			}
			switch {
			case named != nil && size.Cmp(*named) != 0:
			case named == nil && found != nil && size.Cmp(*found) != 0:
				return "", fmt.Errorf("medium: %s can't be used if container requests multiple huge page sizes", medium)
			default:
				found = &size
			}
		}
	}
	if found == nil {
		return "", fmt.Errorf("medium %s: hugePages storage requested, but there is no resource request for huge pages", medium)
	}
	return found.String(), nil
}

func allRequests(p *v1.Pod) []v1.ResourceList {
	var all []v1.ResourceList
	if p.Spec.Resources != nil {
		all = append(all, p.Spec.Resources.Requests)
	}
	for c, kind := range pod.Containers(p) {
		if kind != pod.Ephemeral {
			all = append(all, c.Resources.Requests)
		}
	}
	return all
}
