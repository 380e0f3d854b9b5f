package runtime

import (
	"encoding/json"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Restore rebuilds as much of a pod's spec from its containers' annotations as is needed to stop
// them: the pod may have been deleted while no kubelet ran. The result is of no other use.
func Restore(o pod.Observed) *v1.Pod {
	p := &v1.Pod{}
	p.Namespace, p.Name, p.UID = o.Namespace, o.Name, o.UID
	seen := map[string]bool{}
	for _, c := range o.Containers {
		if seen[c.Name] {
			continue
		}
		seen[c.Name] = true
		if p.Spec.TerminationGracePeriodSeconds == nil {
			p.Spec.TerminationGracePeriodSeconds = seconds(c.Annotations[annotationTerminationGrace])
		}
		if p.DeletionGracePeriodSeconds == nil {
			p.DeletionGracePeriodSeconds = seconds(c.Annotations[annotationDeletionGrace])
		}
		p.Spec.Containers = append(p.Spec.Containers, restoreContainer(c))
	}
	return p
}

// restoreContainer ignores annotations that cannot be parsed, because the container must be
// stopped anyway.
func restoreContainer(c pod.Container) v1.Container {
	spec := v1.Container{
		Name:                     c.Name,
		TerminationMessagePath:   c.Annotations[annotationTerminationPath],
		TerminationMessagePolicy: v1.TerminationMessagePolicy(c.Annotations[annotationTerminationPolicy]),
	}
	if json.Unmarshal([]byte(c.Annotations[annotationPorts]), &spec.Ports) != nil {
		spec.Ports = nil
	}
	var hook v1.LifecycleHandler
	if json.Unmarshal([]byte(c.Annotations[annotationPreStop]), &hook) == nil {
		spec.Lifecycle = &v1.Lifecycle{PreStop: &hook}
	}
	return spec
}

func seconds(text string) *int64 {
	s, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return &s
}
