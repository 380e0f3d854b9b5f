package e2e

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	staticNamespace = "kube-system"
	mirrorName      = "staticweb-node-1"
	staticManifest  = "/etc/kubernetes/manifests/static-pod.yaml"
)

// TestMirror takes a static pod through its life: the API server's copy follows it, and
// is only a copy.
func TestMirror(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	file := node.Path(staticManifest)
	text := testdata(t, "static-pod.yaml")
	write(t, file, text)

	var first, replaced *corev1.Pod
	t.Run("appears", func(t *testing.T) {
		want := recorded(t, "mirror-pod.yaml")
		first = awaitPod(t, staticNamespace, mirrorName, usual, func(pod *corev1.Pod) string {
			if pod == nil {
				return "the mirror pod is not there"
			}
			pod = pod.DeepCopy()
			pod.APIVersion, pod.Kind, pod.ManagedFields = "v1", "Pod", nil
			return difference(want, facts(t, pod, node.Address()))
		})
	})
	if first == nil {
		t.Fatal("no mirror pod to go on with")
	}
	now := viewOf(t, node)
	t.Run("has its events", func(t *testing.T) {
		uid := types.UID(first.Annotations["kubernetes.io/config.hash"]) // the static pod's own
		awaitEvents(t, now, staticNamespace, mirrorName, uid)
	})
	t.Run("is asked for", func(t *testing.T) { compareCalls(t, now, staticNamespace, mirrorName) })
	t.Run("comes back", func(t *testing.T) {
		err := client().CoreV1().Pods(staticNamespace).Delete(t.Context(), mirrorName, atOnce)
		if err != nil {
			t.Fatal(err)
		}
		// The reference makes it anew when the pod's next regular turn comes.
		back := awaitPod(t, staticNamespace, mirrorName, within(usual, 4*usual), func(pod *corev1.Pod) string {
			if pod != nil && pod.UID == first.UID {
				return "the deleted mirror pod is still there"
			}
			return ready(pod)
		})
		same(t, first, back)
	})
	t.Run("is replaced", func(t *testing.T) {
		write(t, file, []byte(strings.Replace(string(text), `"3600"`, `"7200"`, 1)))
		replaced = awaitPod(t, staticNamespace, mirrorName, 2*usual, func(pod *corev1.Pod) string {
			if pod != nil && pod.Spec.Containers[0].Command[1] != "7200" {
				return "the mirror pod is that of the former manifest"
			}
			if missing := ready(pod); missing != "" {
				return missing
			}
			if pod.Status.ContainerStatuses[0].ContainerID == first.Status.ContainerStatuses[0].ContainerID {
				return "the former container runs"
			}
			return ""
		})
	})
	if replaced == nil {
		t.Fatal("no second pod to go on with")
	}
	t.Run("goes", func(t *testing.T) {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		awaitPod(t, staticNamespace, mirrorName, 2*usual, gone)
		out, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "tasks", "ls")
		if err != nil {
			t.Fatal(err)
		}
		_, id, _ := strings.Cut(replaced.Status.ContainerStatuses[0].ContainerID, "://")
		if strings.Contains(out, id) {
			t.Errorf("the container of the removed pod has a process:\n%s", out)
		}
	})
}

// atOnce deletes without a period of grace, as kubelets do with mirror pods.
var atOnce = metav1.DeleteOptions{GracePeriodSeconds: new(int64)}

// write replaces a file in one step: a kubelet may read it at any time.
func write(t *testing.T, file string, data []byte) {
	t.Helper()
	draft := file[:strings.LastIndex(file, "/")+1] + ".draft"
	if err := os.WriteFile(draft, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(draft, file); err != nil {
		t.Fatal(err)
	}
}
