package runtime

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// field returns the value of a field of the pod.
func (in EnvInput) field(of *v1.ObjectFieldSelector) (string, error) {
	if of.APIVersion != "" && of.APIVersion != "v1" {
		return "", fmt.Errorf("unsupported pod version: %s", of.APIVersion)
	}
	if value, known, err := pod.MetadataField(in.Pod, of.FieldPath); known {
		return value, err
	}
	if _, _, subscripted := pod.Subscript(of.FieldPath); subscripted {
		return "", fmt.Errorf("field label does not support subscript: %s", of.FieldPath)
	}
	switch of.FieldPath {
	case "spec.nodeName", "spec.host":
		return in.Pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return in.Pod.Spec.ServiceAccountName, nil
	case "status.podIP":
		return first(in.PodIPs), nil
	case "status.podIPs":
		return strings.Join(in.PodIPs, ","), nil
	case "status.hostIP":
		return first(in.HostIPs), nil
	case "status.hostIPs":
		return strings.Join(in.HostIPs, ","), nil
	case "spec.restartPolicy", "spec.schedulerName", "status.phase":
		return "", fmt.Errorf("unsupported fieldPath: %v", of.FieldPath)
	}
	return "", fmt.Errorf("field label not supported: %s", of.FieldPath)
}

// resourceField returns a request or limit of the container, or of the one that it names.
func (in EnvInput) resourceField(of *v1.ResourceFieldSelector) (string, error) {
	c := in.Container
	if of.ContainerName != "" {
		if c = pod.FindContainer(in.Pod, of.ContainerName); c == nil {
			return "", fmt.Errorf("container %s not found", of.ContainerName)
		}
	}
	return pod.ResourceFieldValue(in.Pod, c, of, in.Allocatable)
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}
