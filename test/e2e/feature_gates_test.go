package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// modePod is a static pod, because the API server would drop its gated fields.
const modePod = `apiVersion: v1
kind: Pod
metadata: {name: mode, namespace: default}
spec:
  restartPolicy: Never
  volumes:
  - {name: d, emptyDir: {mode: 0750}}
  containers:
  - name: c
    image: IMAGE
    command: [stat, -c, "%a", /d]
    volumeMounts: [{name: d, mountPath: /d}]
`

// TestFeatureGates runs pods with gated fields on a node whose feature gates are not the defaults.
func TestFeatureGates(t *testing.T) {
	t.Parallel()
	node := configuredNode(t, "gates", `{featureGates: {ContainerRestartRules: false, RestartAllContainersOnContainerExits: false, EmptyDirVolumeMode: true}}`)
	space := namespace(t)
	again := sleeper("rules", node.Name())
	again.Spec.NodeSelector, again.Spec.NodeName = nil, node.Name() // bypasses the scheduler, which would not place it here
	again.Spec.RestartPolicy = corev1.RestartPolicyNever
	c := &again.Spec.Containers[0]
	c.Command, c.RestartPolicy = []string{"sh", "-c", "exit 42"}, ptr.To(corev1.ContainerRestartPolicyNever)
	c.RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	create(t, space, again)
	write(t, node.Path("/etc/kubernetes/manifests/mode.yaml"), []byte(strings.Replace(modePod, "IMAGE", c.Image, 1)))

	awaitPod(t, space, "rules", timeout, func(p *corev1.Pod) string {
		switch {
		case p == nil || p.Status.Phase != corev1.PodFailed:
			return "the pod has not failed"
		case len(p.Status.ContainerStatuses) != 1 || p.Status.ContainerStatuses[0].RestartCount != 0:
			return "the container was restarted by a rule whose gate is off"
		}
		return ""
	})
	awaitPod(t, "default", "mode-"+node.Name(), timeout, func(p *corev1.Pod) string {
		if p == nil || p.Status.Phase != corev1.PodSucceeded {
			return "the static pod has not succeeded"
		}
		return ""
	})
	if got := kubectl(t, "-n", "default", "logs", "mode-"+node.Name()); strings.TrimSpace(got) != "750" {
		t.Errorf("the emptyDir has mode %q, want 750", got)
	}
}
