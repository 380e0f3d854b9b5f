package admit

import (
	"runtime"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// PodOS rejects pods whose label or spec names another operating system.
func PodOS() Check {
	return func(p *v1.Pod, _ []*v1.Pod) *pod.Rejection {
		if os, ok := p.Labels[v1.LabelOSStable]; ok && os != runtime.GOOS {
			return pod.Reject("PodOSSelectorNodeLabelDoesNotMatch", "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label")
		}
		if p.Spec.OS != nil && string(p.Spec.OS.Name) != runtime.GOOS {
			return pod.Reject("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
		}
		return nil
	}
}
