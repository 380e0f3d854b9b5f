package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

// TestRuntimeOutage stops containerd for ten seconds: the node says so, and afterwards
// everything is as before.
func TestRuntimeOutage(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "outage")
	space := namespace(t)
	create(t, space, sleeper("stays", node.Name()))
	before := awaitPod(t, space, "stays", usual, ready)

	over := time.After(10 * time.Second)
	if err := node.StopContainerd(); err != nil {
		t.Fatal(err)
	}
	// The reference looks at its runtime too seldom to notice such a short outage for sure.
	if kubelet == bed.Ours {
		awaitNode(t, node.Name(), 10*time.Second, nodeReady(corev1.ConditionFalse))
	}
	<-over
	if err := node.StartContainerd(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitNode(t, node.Name(), usual, nodeReady(corev1.ConditionTrue))
	create(t, space, sleeper("later", node.Name()))
	awaitPod(t, space, "later", usual, ready)
	same(t, before, awaitPod(t, space, "stays", usual, ready))
}

// nodeReady is a check.
func nodeReady(want corev1.ConditionStatus) func(*corev1.Node) string {
	return func(node *corev1.Node) string {
		if node == nil {
			return "the node is not there"
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == want {
				return ""
			}
		}
		return "the node's condition Ready is not " + string(want)
	}
}
