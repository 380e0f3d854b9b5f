package runtime

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/cri"
)

// Annotations that containers carry so that they can be stopped properly, and their end
// be told, when their pod's spec is gone. The names are shared with the reference kubelet.
const (
	annotationDeletionGrace     = "io.kubernetes.pod.deletionGracePeriod"
	annotationTerminationGrace  = "io.kubernetes.pod.terminationGracePeriod"
	annotationTerminationPath   = "io.kubernetes.container.terminationMessagePath"
	annotationTerminationPolicy = "io.kubernetes.container.terminationMessagePolicy"
	annotationPreStop           = "io.kubernetes.container.preStopHandler"
	annotationPorts             = "io.kubernetes.container.ports"
)

// identity are the labels by which a pod's objects are found in the runtime.
func identity(p *v1.Pod) map[string]string {
	return map[string]string{
		cri.LabelPodName:      p.Name,
		cri.LabelPodNamespace: p.Namespace,
		cri.LabelPodUID:       string(p.UID),
	}
}

// sandboxLabels are the pod's own labels, which may not hide its identity.
func sandboxLabels(p *v1.Pod) map[string]string {
	labels := make(map[string]string, len(p.Labels)+3)
	maps.Copy(labels, p.Labels)
	maps.Copy(labels, identity(p))
	return labels
}

func containerLabels(p *v1.Pod, container string) map[string]string {
	labels := identity(p)
	labels[cri.LabelContainerName] = container
	return labels
}

// containerAnnotations adds ours to those that devices ask for, ours winning.
func containerAnnotations(in Input) (map[string]string, error) {
	c := in.Container
	a := map[string]string{}
	maps.Copy(a, in.Annotations)
	a[cri.AnnotationContainerHash] = ContainerHash(c)
	a[cri.AnnotationRestartCount] = strconv.Itoa(in.RestartCount)
	a[annotationTerminationPath] = c.TerminationMessagePath
	a[annotationTerminationPolicy] = string(c.TerminationMessagePolicy)
	if s := in.Pod.DeletionGracePeriodSeconds; s != nil {
		a[annotationDeletionGrace] = strconv.FormatInt(*s, 10)
	}
	if s := in.Pod.Spec.TerminationGracePeriodSeconds; s != nil {
		a[annotationTerminationGrace] = strconv.FormatInt(*s, 10)
	}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		text, err := json.Marshal(c.Lifecycle.PreStop)
		if err != nil {
			return nil, fmt.Errorf("annotate container with its preStop hook: %w", err)
		}
		a[annotationPreStop] = string(text)
	}
	if len(c.Ports) > 0 {
		text, err := json.Marshal(c.Ports)
		if err != nil {
			return nil, fmt.Errorf("annotate container with its ports: %w", err)
		}
		a[annotationPorts] = string(text)
	}
	return a, nil
}
