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

// A pod that forks without end is evicted, and nobody else. Processes are counted on the
// whole machine, so that others' need some room.
func TestEvictionForProcesses(t *testing.T) {
	t.Parallel()
	const room, forks = 1500, 3000
	in := namespace(t)
	inUse, most := tasks(t)
	least := resource.NewQuantity(int64(most-inUse-room), resource.DecimalSI).String()
	node := configuredNode(t, "prolific", fmt.Sprintf(`
evictionHard: {pid.available: "%s"}
evictionPressureTransitionPeriod: 11s # the reference tells of its conditions every 10 s
`, least))
	create(t, in, sleeper("bystander", node.Name()))
	awaitPod(t, in, "bystander", usual, ready)

	p := sleeper("forker", node.Name())
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.Spec.Containers[0].Command = []string{"sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 3600 & i=$((i+1)); done; wait", forks)}
	create(t, in, p)
	ended := awaitPod(t, in, "forker", time.Minute, failed)
	checkEvicted(t, ended, fmt.Sprintf("The node was low on resource: pids. Threshold quantity: %s, available: ", least))
	awaitEvicted(t, in, "forker", map[string]string{"starved_resource": "pids"})
	awaitNode(t, node.Name(), usual, pressed(corev1.NodePIDPressure, corev1.ConditionTrue, "KubeletHasInsufficientPID"))
	awaitNode(t, node.Name(), time.Minute, pressed(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"))
	if kubelet == bed.Reference {
		return // it counts processes every ten seconds or so, and may blame anybody
	}
	awaitPod(t, in, "bystander", usual, ready)
}

// tasks is how many there are on the machine, and how many there may be on a node of its own.
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
