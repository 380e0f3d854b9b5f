package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
	"swiftlet/test/poll"
)

// flood writes 15 MB, almost as much as the runtime returns of a command, and fails.
var flood = []string{"sh", "-c", `head -c 15000000 /dev/zero | tr '\0' '\001' >&2; exit 1`}

// TestFlood: the output of hooks and probes makes neither statuses, events nor the log of the kubelet large,
// and its memory does not grow by their size times their number.
func TestFlood(t *testing.T) { // not parallel: it measures memory
	node := ownNode(t, "flood")
	in := clearedNamespace(t)
	memory, logged := peakMemory(t, node), logSize(t, node)
	hook := sleeper("hook", node.Name())
	hook.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: flood}}}
	probes := sleeper("probes", node.Name())
	one := probes.Spec.Containers[0]
	one.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: flood}}, PeriodSeconds: 1, TimeoutSeconds: 30}
	probes.Spec.Containers = nil
	for i := range 4 {
		one.Name = fmt.Sprint("c", i)
		probes.Spec.Containers = append(probes.Spec.Containers, *one.DeepCopy())
	}
	create(t, in, hook)
	create(t, in, probes)
	failed := awaitPod(t, in, "hook", 2*timeout, func(p *corev1.Pod) string {
		if p == nil || len(p.Status.ContainerStatuses) == 0 {
			return "the pod has no container"
		}
		if w := p.Status.ContainerStatuses[0].State.Waiting; w == nil || !strings.Contains(w.Message, "Exec lifecycle hook") && w.Reason != "CrashLoopBackOff" {
			return fmt.Sprintf("the hook has not failed: %+v", p.Status.ContainerStatuses[0].State)
		}
		return ""
	})
	var events corev1.EventList
	poll.Until(t, "failed runs of the probes", func() bool {
		if err := json.Unmarshal([]byte(kubectl(t, "-n", in, "get", "events", "-o", "json")), &events); err != nil {
			t.Fatal(err)
		}
		runs := int32(0)
		for _, e := range events.Items {
			if e.Reason == "Unhealthy" {
				runs += e.Count
			}
		}
		return runs >= 6
	})
	peak, grown := peakMemory(t, node), logSize(t, node)-logged
	t.Logf("peak memory of the kubelet: %d MB before, %d MB after; %d kB of log", memory>>20, peak>>20, grown>>10)
	if kubelet != bed.Ours {
		t.Skip("the reference kubelet has no such limits")
	}
	for _, e := range events.Items {
		if len(e.Message) > 1024 {
			t.Errorf("an event %s has %d bytes", e.Reason, len(e.Message))
		}
	}
	if status, err := json.Marshal(failed.Status); err != nil || len(status) > 32<<10 {
		t.Errorf("the status has %d bytes, %v", len(status), err)
	}
	if grown > 2<<20 {
		t.Errorf("the log has grown by %d bytes", grown)
	}
	if peak > memory+150<<20 {
		t.Errorf("the kubelet's memory peaked at %d MB, %d MB more than before", peak>>20, (peak-memory)>>20)
	}
	kubectl(t, "-n", in, "delete", "pod", "hook", "probes", "--wait=false", "--grace-period=1")
}

// logSize is the size of the log of the node's kubelet.
func logSize(t *testing.T, node *bed.Box) int64 {
	t.Helper()
	info, err := os.Stat(node.Log("kubelet"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
