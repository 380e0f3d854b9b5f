package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/images"
)

// TestStaticPodReturns removes manifests of static pods and restores them at once with the same content: the
// pods restart. Pods whose manifests are only replaced do not restart.
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
		"replaced-by-rename": {change: writeAtomically},
		"written-in-place":   {change: func(file string, text []byte) error { return os.WriteFile(file, text, 0o644) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := returningPod("returns-" + name)
			file := filepath.Join(dir, "returns-"+name+".yaml")
			if err := writeAtomically(file, text); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(file) })
			mirror := "returns-" + name + "-node-1"
			first := awaitPod(t, staticNamespace, mirror, timeout, ready)
			if err := c.change(file, text); err != nil {
				t.Fatal(err)
			}
			if c.restarts {
				awaitPod(t, staticNamespace, mirror, 2*timeout, restartedSince(first))
				return
			}
			// When a later file has been read, so has the change.
			later := filepath.Join(dir, "returns-"+name+"-later.yaml")
			if err := writeAtomically(later, returningPod("returns-"+name+"-later")); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(later) })
			awaitPod(t, staticNamespace, "returns-"+name+"-later-node-1", timeout, ready)
			checkSameContainers(t, first, awaitPod(t, staticNamespace, mirror, timeout, ready))
		})
	}
}

func returningPod(name string) []byte {
	return []byte(strings.NewReplacer("NAME", name, "IMAGE", images.Busybox, "SCRIPT", exitOnTerm).Replace(`
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: kube-system}
spec:
  terminationGracePeriodSeconds: 10
  containers: [{name: c, image: "IMAGE", command: [sh, -c, "SCRIPT"]}]
`))
}

// writeAtomically writes a file atomically.
func writeAtomically(file string, text []byte) error {
	draft := filepath.Join(filepath.Dir(file), "."+filepath.Base(file))
	if err := os.WriteFile(draft, text, 0o644); err != nil {
		return err
	}
	return os.Rename(draft, file)
}

// restartedSince checks that the same static pod runs in a new container, counted as a restart.
func restartedSince(first *corev1.Pod) func(*corev1.Pod) string {
	return func(pod *corev1.Pod) string {
		if missing := ready(pod); missing != "" {
			return missing
		}
		before, now := first.Status.ContainerStatuses[0], pod.Status.ContainerStatuses[0]
		switch hash := "kubernetes.io/config.hash"; {
		case pod.Annotations[hash] != first.Annotations[hash]:
			return "it is a different static pod"
		case now.ContainerID == before.ContainerID:
			return "the old container is running"
		case now.RestartCount != before.RestartCount+1:
			return "the restart is not counted"
		}
		return ""
	}
}
