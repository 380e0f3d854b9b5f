package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// What a pod was given is known to whoever comes after an agent that died at a bad moment:
// just after the pod began, so that the spec has changed before anybody else saw it, and
// just after a resize was asked for.
func TestResizeKilled(t *testing.T) {
	t.Parallel()
	space := namespace(t)
	node := ownNode(t, freshName("resize-killed", space))
	machine, err := client().CoreV1().Nodes().Get(t.Context(), node.Name(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := machine.Status.Allocatable.Cpu().MilliValue()
	create(t, space, resizable("neighbour", node.Name(), amounts{all / 2, all, 32}))
	awaitPod(t, space, "neighbour", usual, ready)
	began := amounts{100, 200, 64}
	create(t, space, resizable("resized", node.Name(), began))
	before := awaitPod(t, space, "resized", usual, ready)
	kill(t, node)
	asked := resize(t, space, "resized", amounts{all * 3 / 4, all, 64})
	start(t, node, kubelet)
	deferred := func(p *corev1.Pod) string {
		c := resizeCondition(p)
		if c == nil || c.Type != corev1.PodResizePending || c.Reason != corev1.PodReasonDeferred || c.ObservedGeneration != asked.Generation {
			return fmt.Sprintf("of generation %d it says %v", asked.Generation, c)
		}
		if has := p.Status.ContainerStatuses[0].AllocatedResources.Cpu().MilliValue(); has != began.request {
			return fmt.Sprintf("it was given %d", has)
		}
		return ready(p)
	}
	same(t, before, awaitPod(t, space, "resized", usual, deferred))
	inKernel(t, node, before, began)

	// The other kubelet reads the same files.
	other := bed.Reference
	if kubelet == other {
		other = bed.Ours
	}
	for _, next := range []bed.KubeletKind{other, kubelet} {
		kill(t, node)
		start(t, node, next)
		create(t, space, sleeper("beside-"+string(next), node.Name()))
		awaitPod(t, space, "beside-"+string(next), usual, ready)
		same(t, before, awaitPod(t, space, "resized", usual, deferred))
		inKernel(t, node, before, began)
	}

	for i, to := range []amounts{{150, 300, 96}, {50, 100, 48}, {100, 200, 64}} {
		asked = resize(t, space, "resized", to)
		kill(t, node)
		start(t, node, kubelet)
		same(t, before, awaitPod(t, space, "resized", usual, resized(asked)))
		inKernel(t, node, before, to)
		if t.Failed() {
			t.Fatalf("resize %d", i)
		}
	}
}

// freshName is a name for a node that no other run of the test gives one: the pods of a
// namespace that is being deleted would count on the new node.
func freshName(node, space string) string {
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
