package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/images"
)

// TestStaticPodReturns takes away the manifests of static pods and puts them back at once,
// with the same content: the pods restart. Those whose manifests are merely replaced do not.
func TestStaticPodReturns(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	dir := node.Path(filepath.Dir(staticManifest))
	for name, c := range map[string]struct {
		change   func(file string, text []byte) error
		restarts bool
	}{
		"rewritten": {restarts: true, change: func(file string, text []byte) error {
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.WriteFile(file, text, 0o644)
		}},
		"moved-away-and-back": {restarts: true, change: func(file string, text []byte) error {
			away := filepath.Join(filepath.Dir(dir), filepath.Base(file))
			if err := os.Rename(file, away); err != nil {
				return err
			}
			return os.Rename(away, file)
		}},
		"replaced-by-rename": {change: place},
		"written-in-place":   {change: func(file string, text []byte) error { return os.WriteFile(file, text, 0o644) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := returningPod("returns-" + name)
			file := filepath.Join(dir, "returns-"+name+".yaml")
			if err := place(file, text); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(file) })
			mirror := "returns-" + name + "-node-1"
			first := awaitPod(t, staticNamespace, mirror, usual, ready)
			if err := c.change(file, text); err != nil {
				t.Fatal(err)
			}
			if c.restarts {
				awaitPod(t, staticNamespace, mirror, 2*usual, restartedSince(first))
				return
			}
			// A file that comes later is followed when the change was.
			later := filepath.Join(dir, "returns-"+name+"-later.yaml")
			if err := place(later, returningPod("returns-"+name+"-later")); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(later) })
			awaitPod(t, staticNamespace, "returns-"+name+"-later-node-1", usual, ready)
			same(t, first, awaitPod(t, staticNamespace, mirror, usual, ready))
		})
	}
}

func returningPod(name string) []byte {
	return []byte(strings.NewReplacer("NAME", name, "IMAGE", images.Busybox, "SCRIPT", untilTold).Replace(`
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: kube-system}
spec:
  terminationGracePeriodSeconds: 10
  containers: [{name: c, image: "IMAGE", command: [sh, -c, "SCRIPT"]}]
`))
}

// place puts a file in one step in its place.
func place(file string, text []byte) error {
	draft := filepath.Join(filepath.Dir(file), "."+filepath.Base(file))
	if err := os.WriteFile(draft, text, 0o644); err != nil {
		return err
	}
	return os.Rename(draft, file)
}

// restartedSince wants the same static pod to run in another container, which counts as a
// restart.
func restartedSince(first *corev1.Pod) func(*corev1.Pod) string {
	return func(pod *corev1.Pod) string {
		if missing := ready(pod); missing != "" {
			return missing
		}
		before, now := first.Status.ContainerStatuses[0], pod.Status.ContainerStatuses[0]
		switch hash := "kubernetes.io/config.hash"; {
		case pod.Annotations[hash] != first.Annotations[hash]:
			return "it is another static pod"
		case now.ContainerID == before.ContainerID:
			return "the former container runs"
		case now.RestartCount != before.RestartCount+1:
			return "the restart is not counted"
		}
		return ""
	}
}
