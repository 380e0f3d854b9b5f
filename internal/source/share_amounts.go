package source

import (
	"maps"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// shareAmounts lets the statuses of containers share the amounts of the spec that equal theirs: each of up to five
// maps takes 700 bytes.
func shareAmounts(p *v1.Pod) {
	for c := range pod.Containers(p) {
		s := statusOf(&p.Status, c.Name)
		if s == nil {
			continue
		}
		share(&s.AllocatedResources, c.Resources.Requests)
		if s.Resources != nil {
			share(&s.Resources.Requests, c.Resources.Requests)
			share(&s.Resources.Limits, c.Resources.Limits)
		}
	}
}

func share(amounts *v1.ResourceList, of v1.ResourceList) {
	if maps.Equal(*amounts, of) { // with their format, which equal amounts may have different
		*amounts = of
	}
}

func statusOf(s *v1.PodStatus, name string) *v1.ContainerStatus {
	for _, list := range [][]v1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
