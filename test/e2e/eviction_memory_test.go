package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/images"
)

// memoryBudget is how much memory the node of the test may use, including agent and runtime.
const memoryBudget = 700 << 20

// TestEvictionForMemory: a pod that uses up the memory is evicted, and no other pod. Under memory
// pressure the node has the condition, and rejects BestEffort pods.
//
// The usage is that of the box, the capacity that of the host.
func TestEvictionForMemory(t *testing.T) {
	t.Parallel()
	in := namespace(t)
	node := configuredNode(t, "hungry", fmt.Sprintf(`
evictionHard: {memory.available: %dKi}
evictionPressureTransitionPeriod: 8s
`, (machineMemory(t)-memoryBudget)>>10))

	now := finalStateView(t, node, in)
	modest := sleeper("modest", node.Name())
	modest.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: quantities("cpu", "10m", "memory", "64Mi")}
	critical := sleeper("critical", node.Name())
	critical.Spec.PriorityClassName = "system-node-critical"
	for _, p := range []*corev1.Pod{modest, critical} {
		create(t, in, p)
	}
	for _, name := range []string{"modest", "critical"} {
		awaitPod(t, in, name, timeout, ready)
	}
	create(t, in, hog("hog", node.Name(), 900))

	ended := awaitPod(t, in, "hog", timeout, failed)
	checkEvicted(t, ended, "The node was low on resource: memory. Threshold quantity: ")
	if text := ended.Status.Message; !strings.Contains(text, "Container c was using ") ||
		!strings.HasSuffix(text, ", request is 0, has larger consumption of memory. ") {
		t.Errorf("the message does not have the usage: %s", text)
	}
	awaitEvicted(t, in, "hog", map[string]string{"offending_containers": "c", "starved_resource": "memory"})
	awaitNode(t, node.Name(), timeout, hasCondition(corev1.NodeMemoryPressure, corev1.ConditionTrue, "KubeletHasInsufficientMemory"))

	late := sleeper("late", node.Name())
	late.Spec.NodeName = node.Name() // bypasses the scheduler, which would see the taint
	create(t, in, late)
	compareFinalState(t, now, in, "late", "memory-pressure")
	awaitNode(t, node.Name(), time.Minute, hasCondition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"))
	for _, name := range []string{"modest", "critical"} {
		p := awaitPod(t, in, name, timeout, ready)
		if n := p.Status.ContainerStatuses[0].RestartCount; n != 0 {
			t.Errorf("%s was restarted %d times", name, n)
		}
	}
}

// machineMemory is the host's memory in bytes.
func machineMemory(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	kilobytes, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// hog is a pod that allocates so many megabytes.
func hog(name, node string, megabytes int) *corev1.Pod {
	p := sleeper(name, node)
	p.Spec.Containers[0].Image = images.Busybox
	p.Spec.Containers[0].Command = []string{"sh", "-c", fmt.Sprintf("dd if=/dev/zero bs=%dM count=1 | sleep 3600", megabytes)}
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	return p
}

func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// failed checks that the pod's phase is Failed.
func failed(p *corev1.Pod) string {
	if p == nil || p.Status.Phase != corev1.PodFailed {
		return "the pod has not failed"
	}
	return ""
}

// hasCondition checks a condition of the node.
func hasCondition(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		for _, c := range n.Status.Conditions {
			if c.Type == kind && c.Status == status && c.Reason == reason {
				return ""
			}
		}
		return fmt.Sprintf("the node does not have the condition %s=%s", kind, status)
	}
}

// checkEvicted checks the status of an evicted pod.
func checkEvicted(t *testing.T, p *corev1.Pod, message string) {
	t.Helper()
	if p.Status.Reason != "Evicted" || !strings.HasPrefix(p.Status.Message, message) {
		t.Errorf("status is %s: %q, want %q", p.Status.Reason, p.Status.Message, message)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			if c.Status != corev1.ConditionTrue || c.Reason != corev1.PodReasonTerminationByKubelet || c.Message != p.Status.Message {
				t.Errorf("condition DisruptionTarget is %v", c)
			}
			return
		}
	}
	t.Error("there is no condition DisruptionTarget")
}

// awaitEvicted waits for the event of a pod's eviction, and checks its annotations.
func awaitEvicted(t *testing.T, namespace, pod string, annotations map[string]string) corev1.Event {
	t.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(100 * time.Millisecond) {
		list, err := client().CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Evicted,involvedObject.name=" + pod})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) > 0 {
			for name, want := range annotations {
				if got := list.Items[0].Annotations[name]; got != want {
					t.Errorf("annotation %s is %q, want %q", name, got, want)
				}
			}
			return list.Items[0]
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no eviction event of %s", pod)
		}
	}
}
