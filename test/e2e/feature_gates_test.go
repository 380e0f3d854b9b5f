package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// A static pod reaches the node with fields that the API server would take away.
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

// TestGates runs pods whose fields stand behind gates, on a node where gates are not at
// their defaults.
func TestGates(t *testing.T) {
	t.Parallel()
	node := configuredNode(t, "gates", `{featureGates: {ContainerRestartRules: false, RestartAllContainersOnContainerExits: false, EmptyDirVolumeMode: true}}`)
	space := namespace(t)
	again := sleeper("rules", node.Name())
	again.Spec.NodeSelector, again.Spec.NodeName = nil, node.Name() // the scheduler would not place it here
	again.Spec.RestartPolicy = corev1.RestartPolicyNever
	c := &again.Spec.Containers[0]
	c.Command, c.RestartPolicy = []string{"sh", "-c", "exit 42"}, ptr.To(corev1.ContainerRestartPolicyNever)
	c.RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	create(t, space, again)
	write(t, node.Path("/etc/kubernetes/manifests/mode.yaml"), []byte(strings.Replace(modePod, "IMAGE", c.Image, 1)))

	awaitPod(t, space, "rules", usual, func(p *corev1.Pod) string {
		switch {
		case p == nil || p.Status.Phase != corev1.PodFailed:
			return "a pod that never restarts has not failed"
		case len(p.Status.ContainerStatuses) != 1 || p.Status.ContainerStatuses[0].RestartCount != 0:
			return "the container was restarted by a rule that is switched off"
		}
		return ""
	})
	awaitPod(t, "default", "mode-"+node.Name(), usual, func(p *corev1.Pod) string {
		if p == nil || p.Status.Phase != corev1.PodSucceeded {
			return "the pod with a mode has not ended"
		}
		return ""
	})
	if got := kubectl(t, "-n", "default", "logs", "mode-"+node.Name()); strings.TrimSpace(got) != "750" {
		t.Errorf("the emptyDir has mode %q, want 750", got)
	}
}
