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

// TestMirrorPod checks that the mirror pod follows its static pod.
func TestMirrorPod(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	file := node.Path(staticManifest)
	text := testdata(t, "static-pod.yaml")
	write(t, file, text)

	var first, replaced *corev1.Pod
	t.Run("is created", func(t *testing.T) {
		want := recorded(t, "mirror-pod.yaml")
		first = awaitPod(t, staticNamespace, mirrorName, timeout, func(pod *corev1.Pod) string {
			if pod == nil {
				return "the mirror pod does not exist"
			}
			pod = pod.DeepCopy()
			pod.APIVersion, pod.Kind, pod.ManagedFields = "v1", "Pod", nil
			return difference(want, normalize(t, pod, node.Address()))
		})
	})
	if first == nil {
		t.Fatal("no mirror pod to continue with")
	}
	now := viewOf(t, node)
	t.Run("has its events", func(t *testing.T) {
		uid := types.UID(first.Annotations["kubernetes.io/config.hash"]) // UID of the static pod
		awaitEvents(t, now, staticNamespace, mirrorName, uid)
	})
	t.Run("has its CRI requests", func(t *testing.T) { compareCalls(t, now, staticNamespace, mirrorName) })
	t.Run("is recreated after deletion", func(t *testing.T) {
		err := client().CoreV1().Pods(staticNamespace).Delete(t.Context(), mirrorName, forceDelete)
		if err != nil {
			t.Fatal(err)
		}
		// The reference recreates it at the pod's next periodic sync.
		back := awaitPod(t, staticNamespace, mirrorName, timeoutFor(timeout, 4*timeout), func(pod *corev1.Pod) string {
			if pod != nil && pod.UID == first.UID {
				return "the deleted mirror pod still exists"
			}
			return ready(pod)
		})
		checkSameContainers(t, first, back)
	})
	t.Run("is replaced when the manifest changes", func(t *testing.T) {
		write(t, file, []byte(strings.Replace(string(text), `"3600"`, `"7200"`, 1)))
		replaced = awaitPod(t, staticNamespace, mirrorName, 2*timeout, func(pod *corev1.Pod) string {
			if pod != nil && pod.Spec.Containers[0].Command[1] != "7200" {
				return "the mirror pod has the old manifest"
			}
			if missing := ready(pod); missing != "" {
				return missing
			}
			if pod.Status.ContainerStatuses[0].ContainerID == first.Status.ContainerStatuses[0].ContainerID {
				return "the old container is running"
			}
			return ""
		})
	})
	if replaced == nil {
		t.Fatal("no second pod to continue with")
	}
	t.Run("is deleted with the manifest", func(t *testing.T) {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		awaitPod(t, staticNamespace, mirrorName, 2*timeout, gone)
		out, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "tasks", "ls")
		if err != nil {
			t.Fatal(err)
		}
		_, id, _ := strings.Cut(replaced.Status.ContainerStatuses[0].ContainerID, "://")
		if strings.Contains(out, id) {
			t.Errorf("the removed pod still has a process:\n%s", out)
		}
	})
}

// forceDelete deletes without a grace period, as kubelets do with mirror pods.
var forceDelete = metav1.DeleteOptions{GracePeriodSeconds: new(int64)}

// write replaces a file atomically: a kubelet may read it at any time.
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
