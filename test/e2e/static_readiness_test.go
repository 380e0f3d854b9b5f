package e2e

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// TestStaticPodReadiness restarts the agent on a node with a static pod whose readiness probe runs rarely: its
// mirror pod stays started and ready. So it does if the agent cannot reach the API server at first. The
// reference keeps only that it has started.
func TestStaticPodReadiness(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "probing")
	manifests := node.Path(filepath.Dir(staticManifest))
	add := func(name string) (mirror string) {
		t.Helper()
		if err := writeAtomically(filepath.Join(manifests, name+".yaml"), rarelyProbed(name)); err != nil {
			t.Fatal(err)
		}
		return name + "-" + node.Name()
	}
	mirror := add("slow")
	first := awaitPod(t, staticNamespace, mirror, timeoutFor(timeout, 3*timeout), ready)
	if kubelet == bed.Reference { // it keeps the state only of containers that are older than 10 s
		time.Sleep(time.Until(first.Status.ContainerStatuses[0].State.Running.StartedAt.Add(12 * time.Second)))
	}
	for name, reachable := range map[string]bool{"reachable": true, "unreachable": false} {
		t.Run("API server "+name, func(t *testing.T) {
			stop := record[corev1.Pod](t, pods(staticNamespace), mirror)
			if err := node.KillKubelet(); err != nil {
				t.Fatal(err)
			}
			later := add("later-" + name)
			if reachable { // only the mirror has the state, as if another kubelet had run
				if _, err := node.Exec(t.Context(), "rm", "-f", "/var/lib/kubelet/probe_results_state"); err != nil {
					t.Fatal(err)
				}
			} else {
				routeToAPIServer(t, node, "add")
			}
			if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}); err != nil {
				t.Fatal(err)
			}
			// When a new static pod has a container, the agent has synced the older one.
			eventually(t, 2*timeout, func() string { return notCreated(t, node, later) })
			if !reachable {
				routeToAPIServer(t, node, "del")
			}
			awaitPod(t, staticNamespace, later, timeoutFor(2*timeout, 4*timeout), ready)
			for _, version := range stop() {
				if missing := ready(version); missing != "" && kubelet != bed.Reference {
					t.Error(missing)
				}
				if started := version.Status.ContainerStatuses[0].Started; started == nil || !*started {
					t.Error("the container is not started")
				}
				checkSameContainers(t, first, version)
			}
		})
	}
}

// rarelyProbed is the manifest of a static pod whose startup probe passes only once.
func rarelyProbed(name string) []byte {
	return []byte(strings.NewReplacer("NAME", name, "IMAGE", images.Busybox, "SCRIPT", exitOnTerm).Replace(`
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: kube-system}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: IMAGE
    command: [sh, -c, "SCRIPT"]
    startupProbe: {exec: {command: [mkdir, /started]}, periodSeconds: 1, failureThreshold: 3}
    readinessProbe: {exec: {command: ["true"]}, periodSeconds: 30}
`))
}

// routeToAPIServer adds or deletes a route that makes the API server unreachable from the node.
func routeToAPIServer(t *testing.T, node *bed.Box, change string) {
	t.Helper()
	server, err := url.Parse(cluster.ControlPlane.Server)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Exec(t.Context(), "ip", "route", change, "unreachable", server.Hostname()+"/32"); err != nil {
		t.Fatal(err)
	}
}

// notCreated returns a text unless the runtime has a container of the static pod.
func notCreated(t *testing.T, node *bed.Box, pod string) string {
	t.Helper()
	filter := fmt.Sprintf(`labels."io.kubernetes.pod.name"==%s,labels."io.kubernetes.container.name"==c`, pod)
	if out, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "containers", "ls", "-q", filter); err != nil || out == "" {
		return fmt.Sprintf("%s has no container (%v)", pod, err)
	}
	return ""
}
