package runtime

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/cri"
)

// Annotations of containers. With them the kubelet can run the preStop hook, keep the grace
// period and read the termination message when the pod's spec is gone. The names are those of
// the reference kubelet.
const (
	annotationDeletionGrace     = "io.kubernetes.pod.deletionGracePeriod"
	annotationTerminationGrace  = "io.kubernetes.pod.terminationGracePeriod"
	annotationTerminationPath   = "io.kubernetes.container.terminationMessagePath"
	annotationTerminationPolicy = "io.kubernetes.container.terminationMessagePolicy"
	annotationPreStop           = "io.kubernetes.container.preStopHandler"
	annotationPorts             = "io.kubernetes.container.ports"
)

// identity returns the labels by which the kubelet finds a pod's sandboxes and containers.
func identity(p *v1.Pod) map[string]string {
	return map[string]string{
		cri.LabelPodName:      p.Name,
		cri.LabelPodNamespace: p.Namespace,
		cri.LabelPodUID:       string(p.UID),
	}
}

// sandboxLabels returns the pod's own labels and its identity, which wins.
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

// containerAnnotations adds the kubelet's annotations to those of device plugins. The
// kubelet's win.
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
