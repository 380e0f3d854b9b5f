package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// TestResizeKilled: a pod's allocation is known after the agent was killed at a critical moment: right after
// the pod started and before its spec changed, and right after a resize was requested.
func TestResizeKilled(t *testing.T) {
	t.Parallel()
	space := namespace(t)
	node := ownNode(t, uniqueNodeName("resize-killed", space))
	machine, err := client().CoreV1().Nodes().Get(t.Context(), node.Name(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := machine.Status.Allocatable.Cpu().MilliValue()
	create(t, space, resizable("neighbour", node.Name(), amounts{all / 2, all, 32}))
	awaitPod(t, space, "neighbour", timeout, ready)
	began := amounts{100, 200, 64}
	create(t, space, resizable("resized", node.Name(), began))
	before := awaitPod(t, space, "resized", timeout, ready)
	kill(t, node)
	requested := resize(t, space, "resized", amounts{all * 3 / 4, all, 64})
	start(t, node, kubelet)
	deferred := func(p *corev1.Pod) string {
		c := resizeCondition(p)
		if c == nil || c.Type != corev1.PodResizePending || c.Reason != corev1.PodReasonDeferred || c.ObservedGeneration != requested.Generation {
			return fmt.Sprintf("resize condition for generation %d is %v", requested.Generation, c)
		}
		if has := p.Status.ContainerStatuses[0].AllocatedResources.Cpu().MilliValue(); has != began.request {
			return fmt.Sprintf("allocated CPU is %d", has)
		}
		return ready(p)
	}
	checkSameContainers(t, before, awaitPod(t, space, "resized", timeout, deferred))
	checkCgroups(t, node, before, began)

	// The other kubelet reads the same state files.
	other := bed.Reference
	if kubelet == other {
		other = bed.Ours
	}
	for _, next := range []bed.KubeletKind{other, kubelet} {
		kill(t, node)
		start(t, node, next)
		create(t, space, sleeper("next-to-"+string(next), node.Name()))
		awaitPod(t, space, "next-to-"+string(next), timeout, ready)
		checkSameContainers(t, before, awaitPod(t, space, "resized", timeout, deferred))
		checkCgroups(t, node, before, began)
	}

	for i, to := range []amounts{{150, 300, 96}, {50, 100, 48}, {100, 200, 64}} {
		requested = resize(t, space, "resized", to)
		kill(t, node)
		start(t, node, kubelet)
		checkSameContainers(t, before, awaitPod(t, space, "resized", timeout, resized(requested)))
		checkCgroups(t, node, before, to)
		if t.Failed() {
			t.Fatalf("resize %d", i)
		}
	}
}

// uniqueNodeName returns a node name that is unique to this run: pods of an earlier run that are still being
// deleted would count on a node of the same name.
func uniqueNodeName(node, space string) string {
	return node + space[strings.LastIndex(space, "-"):]
}

func kill(t *testing.T, node *bed.Box) {
	t.Helper()
	if err := node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, node *bed.Box, kind bed.KubeletKind) {
	t.Helper()
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kind}); err != nil {
		t.Fatal(err)
	}
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}
