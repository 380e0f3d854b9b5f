package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// TestContainerOOM: an OOM kill because of a container's limit is counted for the container, which keeps
// running, and causes no SystemOOM event.
func TestContainerOOM(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	eater := scripted("eater", node.Name(), "echo 1000 > /proc/self/oom_score_adj; tail /dev/zero; "+exitOnTerm)
	eater.Spec.Containers[0].Resources.Limits = quantities("memory", "32Mi")
	eater.Spec.Containers[0].Resources.Requests = quantities("cpu", "1m", "memory", "1Mi")
	before := startPod(t, in, eater)

	// The reference uses the cgroup path of the kernel log, which is that outside of the box.
	if kubelet == bed.Ours {
		labels := map[string]string{"namespace": in, "pod": "eater", "container": "c"}
		eventually(t, timeout, func() string {
			if seriesValue(t, scrapeNode(t, node, "/metrics/cadvisor")["container_oom_events_total"], labels) == 0 {
				return "the OOM kill is not counted"
			}
			return ""
		})
	}
	// Events are written in order: after those of a later pod, no earlier one is missing.
	startPod(t, in, sleeper("later", node.Name()))
	awaitEvent(t, in, "later", "Container started")
	list, err := client().CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=SystemOOM,involvedObject.name=" + node.Name()})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		if strings.Contains(e.Message, "victim process: tail,") {
			t.Errorf("there is a SystemOOM event: %s", e.Message)
		}
	}
	checkSameContainers(t, before, awaitPod(t, in, "eater", timeout, ready))
}
