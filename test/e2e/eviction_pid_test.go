package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/test/bed"
)

// TestEvictionForProcesses: a pod with too many processes is evicted, and no other pod. Processes of
// the whole host count, so the threshold leaves some room for them.
func TestEvictionForProcesses(t *testing.T) {
	t.Parallel()
	const room, forks = 1500, 3000
	in := namespace(t)
	inUse, most := tasks(t)
	least := resource.NewQuantity(int64(most-inUse-room), resource.DecimalSI).String()
	node := configuredNode(t, "prolific", fmt.Sprintf(`
evictionHard: {pid.available: "%s"}
evictionPressureTransitionPeriod: 11s # the reference updates its conditions every 10 s
`, least))
	create(t, in, sleeper("bystander", node.Name()))
	awaitPod(t, in, "bystander", timeout, ready)

	p := sleeper("forker", node.Name())
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.Spec.Containers[0].Command = []string{"sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 3600 & i=$((i+1)); done; wait", forks)}
	create(t, in, p)
	ended := awaitPod(t, in, "forker", time.Minute, failed)
	checkEvicted(t, ended, fmt.Sprintf("The node was low on resource: pids. Threshold quantity: %s, available: ", least))
	awaitEvicted(t, in, "forker", map[string]string{"starved_resource": "pids"})
	awaitNode(t, node.Name(), timeout, hasCondition(corev1.NodePIDPressure, corev1.ConditionTrue, "KubeletHasInsufficientPID"))
	awaitNode(t, node.Name(), time.Minute, hasCondition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"))
	if kubelet == bed.Reference {
		return // its counts are ten seconds old, so it may evict another pod
	}
	awaitPod(t, in, "bystander", timeout, ready)
}

// tasks returns the number of tasks on the host, and the limit on a node.
func tasks(t *testing.T) (inUse, most int) {
	t.Helper()
	read := func(file string, field int) string {
		text, err := steadyNode(t).Exec(t.Context(), "cat", file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(text)[field]
	}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	_, all, _ := strings.Cut(read("/proc/loadavg", 3), "/")
	return number(all), min(number(read("/proc/sys/kernel/pid_max", 0)), number(read("/proc/sys/kernel/threads-max", 0)))
}
