package kubeadm

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// running is the pods of a node, by namespace and name.
type running map[string]*corev1.Pod

// running returns the pods that run on a node.
func (c *cluster) running(t *testing.T, node string) running {
	t.Helper()
	list, err := c.client.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		t.Fatal(err)
	}
	pods := running{}
	for i := range list.Items {
		if pod := &list.Items[i]; pod.Status.Phase == corev1.PodRunning {
			pods[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	return pods
}

// checkUndisturbed waits until the pods are ready, and checks that none of their containers has been
// restarted. If steady, no pod may have been unready in the meantime.
func (c *cluster) checkUndisturbed(t *testing.T, before running, steady bool) {
	t.Helper()
	for _, was := range before {
		eventually(t, timeout, func() string { return c.podReady(t, was.Namespace, was.Name) })
		is := c.pod(t, was.Namespace, was.Name)
		if a, b := containers(was), containers(is); a != b {
			t.Errorf("containers of %s were\n%s\nand are\n%s", was.Name, a, b)
		}
		if a, b := readySince(was), readySince(is); steady && !a.Equal(&b) {
			t.Errorf("%s was ready since %v and is since %v", was.Name, a, b)
		}
	}
}

// containers lists the pod's containers with their IDs and restarts.
func containers(pod *corev1.Pod) (text string) {
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		text += fmt.Sprintf("%s: %s, %d restarts\n", status.Name, status.ContainerID, status.RestartCount)
	}
	return text
}

func readySince(pod *corev1.Pod) metav1.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.LastTransitionTime
		}
	}
	return metav1.Time{}
}
