package pod

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
)

// ResizeMessage returns the message of a resize event: prefix and the pod's resources as JSON.
func ResizeMessage(prefix string, p *v1.Pod, generation int64, failure string) string {
	type container struct {
		Name      string                  `json:"name"`
		Resources v1.ResourceRequirements `json:"resources"`
	}
	list := func(of []v1.Container) (all []container) {
		for _, c := range of {
			all = append(all, container{c.Name, c.Resources})
		}
		return all
	}
	text, err := json.Marshal(struct {
		InitContainers []container `json:"initContainers,omitempty"`
		Containers     []container `json:"containers,omitempty"`
		Generation     int64       `json:"generation"`
		Error          string      `json:"error,omitempty"`
	}{list(p.Spec.InitContainers), list(p.Spec.Containers), generation, failure})
	if err != nil {
		return prefix
	}
	return prefix + ": " + string(text)
}
