package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFailedKillPod: the network of a deleted pod cannot be torn down. An event says why the pod
// is still terminating; when the network can be torn down, the pod is gone.
func TestFailedKillPod(t *testing.T) {
	t.Parallel()
	node, in := ownNode(t, "failed-kill"), namespace(t)
	p := startPod(t, in, sleeper("stuck", node.Name()))
	const plugin = "/opt/cni/bin/portmap"
	inNode(t, node, "mount --bind /bin/false "+plugin)
	if err := client().CoreV1().Pods(in).Delete(t.Context(), "stuck", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e := awaitReason(t, in, "stuck", "FailedKillPod", timeout)
	start := `error killing pod: failed to "KillPodSandbox" for "` + string(p.UID) + `" with KillPodSandboxError: "rpc error: code = Unknown desc = failed to destroy network for sandbox `
	checkPodEvent(t, e, p, start)
	inNode(t, node, "umount -l "+plugin)
	awaitPod(t, in, "stuck", 2*timeout, gone)
}

// checkPodEvent checks a warning about the whole pod.
func checkPodEvent(t *testing.T, e *corev1.Event, p *corev1.Pod, messageStart string) {
	t.Helper()
	got := corev1.Event{Type: e.Type, InvolvedObject: e.InvolvedObject}
	want := corev1.Event{Type: corev1.EventTypeWarning, InvolvedObject: corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: e.InvolvedObject.ResourceVersion,
	}}
	if got.Type != want.Type || got.InvolvedObject != want.InvolvedObject {
		t.Errorf("%s event about %v, want %s about %v", got.Type, got.InvolvedObject, want.Type, want.InvolvedObject)
	}
	if component(e) != "kubelet" {
		t.Errorf("event of %s", component(e))
	}
	if len(e.Message) < len(messageStart) || e.Message[:len(messageStart)] != messageStart {
		t.Errorf("message %q, want %q…", e.Message, messageStart)
	}
}

// awaitReason waits for an event of the pod with this reason.
func awaitReason(t *testing.T, in, pod, reason string, limit time.Duration) (found *corev1.Event) {
	t.Helper()
	eventually(t, limit, func() string {
		list, err := client().CoreV1().Events(in).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod + ",reason=" + reason})
		switch {
		case err != nil:
			return err.Error()
		case len(list.Items) == 0:
			return "the pod has no event " + reason
		}
		found = &list.Items[0]
		return ""
	})
	return found
}
