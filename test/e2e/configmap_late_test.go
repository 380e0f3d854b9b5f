package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// TestConfigMapCreatedLate: a pod whose environment refers to a missing ConfigMap starts as soon as the
// ConfigMap is created. It does not run in parallel with other tests, as it measures time.
func TestConfigMapCreatedLate(t *testing.T) {
	node, in := steadyNode(t), namespace(t)
	p := sleeper("waits", node.Name())
	p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "late"}}}}
	create(t, in, p)
	awaitPod(t, in, "waits", timeout, func(p *corev1.Pod) string {
		if p == nil || len(p.Status.ContainerStatuses) == 0 {
			return "the pod has no status"
		}
		w := p.Status.ContainerStatuses[0].State.Waiting
		if w == nil || w.Reason != "CreateContainerConfigError" || w.Message != `configmap "late" not found` {
			return "the container is not waiting for the ConfigMap: " + p.Status.ContainerStatuses[0].State.String()
		}
		return ""
	})
	// Long enough for the back-off to have grown.
	time.Sleep(5 * time.Second)
	made := time.Now()
	late := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Data: map[string]string{"KEY": "value"}}
	if _, err := client().CoreV1().ConfigMaps(in).Create(t.Context(), late, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, in, "waits", timeoutFor(timeout, 4*timeout), ready)
	if took := time.Since(made); kubelet == bed.Ours && took > 3*time.Second {
		t.Errorf("the pod started %v after its ConfigMap, want at most 3 s", took)
	}
}
