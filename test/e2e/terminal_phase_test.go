package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/test/bed"
)

// TestTerminalPhaseWritten: the kubelet stops a pod when another component writes a terminal phase to its
// status, and the pod keeps that phase, whatever the exit codes of its containers.
func TestTerminalPhaseWritten(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := clearedNamespace(t)
	cases := map[string]struct {
		phase  corev1.PodPhase
		reason string
		labels string // written with the phase
	}{
		"failed":    {corev1.PodFailed, "Broken", `{"broken": "yes"}`},
		"succeeded": {corev1.PodSucceeded, "", `{"broken": "no"}`},
		"alone":     {corev1.PodFailed, "Broken", `{}`},
	}
	for name := range cases {
		pod := sleeper(name, node.Name())
		pod.Spec.Containers[0].Command = []string{"sh", "-c", "trap 'exit 3' TERM; while :; do sleep 3600 & wait; done"}
		startPod(t, space, pod)
	}
	startPod(t, space, sleeper("witness", node.Name())) // no status of the older pods is being written any more
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if kubelet == bed.Reference && c.labels == "{}" {
				t.Skip("the reference reverts the phase, unless it syncs the pod before it compares statuses")
			}
			t.Parallel()
			stop := record[corev1.Pod](t, pods(space), name)
			patch := fmt.Sprintf(`{"metadata": {"labels": %s}, "status": {"phase": %q, "reason": %q}}`, c.labels, c.phase, c.reason)
			if _, err := client().CoreV1().Pods(space).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
			awaitPod(t, space, name, timeout, stoppedWith(c.phase, c.reason))
			written := false
			for _, version := range stop() {
				phase := version.Status.Phase
				if written && phase != c.phase {
					t.Errorf("phase %s was reverted to %s", c.phase, phase)
				}
				written = written || phase == c.phase
			}
		})
	}
}

// stoppedWith checks that the pod's container has exited with an error, and that the pod has this phase and reason.
func stoppedWith(phase corev1.PodPhase, reason string) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		if end := p.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode == 0 {
			return fmt.Sprintf("the container is %+v in phase %s", p.Status.ContainerStatuses[0].State, p.Status.Phase)
		}
		if s := p.Status; s.Phase != phase || s.Reason != reason || ready(p) == "" {
			return fmt.Sprintf("phase %s, reason %q, conditions %+v", s.Phase, s.Reason, s.Conditions)
		}
		return ""
	}
}
