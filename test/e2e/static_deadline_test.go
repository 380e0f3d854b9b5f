package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// TestStaticPodDeadline restarts the agent after a static pod has exceeded its active deadline: the pod starts
// again, as its manifest is still there, and its deadline counts from the new start.
func TestStaticPodDeadline(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "deadline")
	manifest := filepath.Join(node.Path(filepath.Dir(staticManifest)), "brief.yaml")
	if err := writeAtomically(manifest, briefPod); err != nil {
		t.Fatal(err)
	}
	mirror := "brief-" + node.Name()
	first := awaitPod(t, staticNamespace, mirror, timeoutFor(timeout, 3*timeout), pastDeadline)
	if err := node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, staticNamespace, mirror, timeoutFor(2*timeout, 4*timeout), func(pod *corev1.Pod) string {
		if missing := pastDeadline(pod); missing != "" {
			return missing
		}
		if pod.Status.ContainerStatuses[0].RestartCount == first.Status.ContainerStatuses[0].RestartCount {
			return "the pod has not started again"
		}
		return ""
	})
}

func pastDeadline(pod *corev1.Pod) string {
	if pod == nil {
		return "no mirror pod"
	}
	statuses := pod.Status.ContainerStatuses
	if pod.Status.Phase != corev1.PodFailed || pod.Status.Reason != "DeadlineExceeded" || len(statuses) == 0 || statuses[0].State.Terminated == nil {
		return "the deadline has not ended the pod: " + string(pod.Status.Phase) + " " + pod.Status.Reason
	}
	return ""
}

var briefPod = []byte(strings.NewReplacer("IMAGE", images.Busybox, "SCRIPT", exitOnTerm).Replace(`
apiVersion: v1
kind: Pod
metadata: {name: brief, namespace: kube-system}
spec:
  activeDeadlineSeconds: 4
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "IMAGE", command: [sh, -c, "SCRIPT"]}]
`))
