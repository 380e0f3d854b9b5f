package admit

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// PodLevelResources rejects pods with pod-level resources if the feature gate is disabled,
// because they would run without these limits.
func PodLevelResources(enabled bool) Check {
	return func(p *v1.Pod, _ []*v1.Pod) *pod.Rejection {
		if enabled || !resourcehelper.IsPodLevelResourcesSet(p) {
			return nil
		}
		return pod.Reject("PodLevelResourcesNotSupported", "PodLevelResources feature gate is disabled")
	}
}

// DeclaredFeatures rejects pods that require a feature that the node does not declare.
func DeclaredFeatures(kubeletVersion string, node func() (*v1.Node, error)) (Check, error) {
	v, err := version.ParseSemantic(kubeletVersion)
	if err != nil {
		return nil, fmt.Errorf("check declared features: parse kubelet version: %w", err)
	}
	framework := nodedeclaredfeatures.DefaultFramework
	const reason = "PodFeatureUnsupported"
	return func(p *v1.Pod, _ []*v1.Pod) *pod.Rejection {
		required, err := framework.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: &p.Spec, Status: &p.Status}, v)
		if err != nil {
			return pod.Reject(reason, "Failed to infer pod's feature requirements: %v", err)
		}
		if required.IsEmpty() {
			return nil
		}
		current, err := node()
		if err != nil {
			return pod.Reject("InvalidNodeInfo", "Kubelet cannot get node info.")
		}
		result, err := framework.MatchNode(required, current)
		if err != nil {
			return pod.Reject(reason, "Failed to match pod's feature requirements against the node: %v", err)
		}
		if !result.IsMatch {
			return pod.Reject(reason, "Pod requires node features that are not available: %s", strings.Join(result.UnsatisfiedRequirements, ", "))
		}
		return nil
	}, nil
}
