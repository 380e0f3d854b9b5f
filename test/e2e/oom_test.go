package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// TestContainerOOM: a process that its container's limit kills is counted for the container,
// which goes on, and is not the node's affair.
func TestContainerOOM(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	eater := scripted("eater", node.Name(), "echo 1000 > /proc/self/oom_score_adj; tail /dev/zero; "+untilTold)
	eater.Spec.Containers[0].Resources.Limits = quantities("memory", "32Mi")
	eater.Spec.Containers[0].Resources.Requests = quantities("cpu", "1m", "memory", "1Mi")
	before := startPod(t, in, eater)

	// The reference looks for the group by the path that the kernel's log has, which is that
	// outside of the node's box.
	if kubelet == bed.Ours {
		labels := map[string]string{"namespace": in, "pod": "eater", "container": "c"}
		eventually(t, usual, func() string {
			if seriesValue(t, scrapeNode(t, node, "/metrics/cadvisor")["container_oom_events_total"], labels) == 0 {
				return "the kill is not counted"
			}
			return ""
		})
	}
	// Events are written in order: those of a later pod tell that an earlier one is not to come.
	startPod(t, in, sleeper("later", node.Name()))
	awaitEvent(t, in, "later", "Container started")
	list, err := client().CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=SystemOOM,involvedObject.name=" + node.Name()})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		if strings.Contains(e.Message, "victim process: tail,") {
			t.Errorf("it is told as the node's: %s", e.Message)
		}
	}
	same(t, before, awaitPod(t, in, "eater", usual, ready))
}
