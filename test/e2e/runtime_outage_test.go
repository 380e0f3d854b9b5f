package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

// TestRuntimeOutage stops containerd for ten seconds: the node becomes not ready, and recovers afterwards.
func TestRuntimeOutage(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "outage")
	space := namespace(t)
	create(t, space, sleeper("stays", node.Name()))
	before := awaitPod(t, space, "stays", timeout, ready)

	over := time.After(10 * time.Second)
	if err := node.StopContainerd(); err != nil {
		t.Fatal(err)
	}
	// The reference may miss such a short outage.
	if kubelet == bed.Ours {
		awaitNode(t, node.Name(), 10*time.Second, nodeReady(corev1.ConditionFalse))
	}
	<-over
	if err := node.StartContainerd(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitNode(t, node.Name(), timeout, nodeReady(corev1.ConditionTrue))
	create(t, space, sleeper("later", node.Name()))
	awaitPod(t, space, "later", timeout, ready)
	checkSameContainers(t, before, awaitPod(t, space, "stays", timeout, ready))
}

// nodeReady checks the node's condition Ready.
func nodeReady(want corev1.ConditionStatus) func(*corev1.Node) string {
	return func(node *corev1.Node) string {
		if node == nil {
			return "the node does not exist"
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == want {
				return ""
			}
		}
		return "the node's condition Ready is not " + string(want)
	}
}
