package runtime

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// field is the value of a field of the pod.
func (in EnvInput) field(of *v1.ObjectFieldSelector) (string, error) {
	if of.APIVersion != "" && of.APIVersion != "v1" {
		return "", fmt.Errorf("unsupported pod version: %s", of.APIVersion)
	}
	if path, key, ok := subscript(of.FieldPath); ok {
		return in.keyed(of.FieldPath, path, key)
	}
	p := in.Pod
	switch of.FieldPath {
	case "metadata.name":
		return p.Name, nil
	case "metadata.namespace":
		return p.Namespace, nil
	case "metadata.uid":
		return string(p.UID), nil
	case "metadata.labels":
		return listing(p.Labels), nil
	case "metadata.annotations":
		return listing(p.Annotations), nil
	case "spec.nodeName", "spec.host":
		return p.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return p.Spec.ServiceAccountName, nil
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

// keyed is one label or annotation; an absent one is empty.
func (in EnvInput) keyed(whole, path, key string) (string, error) {
	var from map[string]string
	checked := key
	switch path {
	case "metadata.labels":
		from = in.Pod.Labels
	case "metadata.annotations":
		from = in.Pod.Annotations
		checked = strings.ToLower(key)
	default:
		return "", fmt.Errorf("field label does not support subscript: %s", whole)
	}
	if wrong := validation.IsQualifiedName(checked); len(wrong) != 0 {
		return "", fmt.Errorf("invalid key subscript in %s: %s", whole, strings.Join(wrong, ";"))
	}
	return from[key], nil
}

// subscript splits metadata.labels['key'].
func subscript(path string) (before, key string, ok bool) {
	rest, closed := strings.CutSuffix(path, "']")
	before, key, opened := strings.Cut(rest, "['")
	return before, key, closed && opened && before != ""
}

// listing shows a map as one key="value" a line.
func listing(m map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, key+"="+strconv.Quote(m[key]))
	}
	return strings.Join(lines, "\n")
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}
