package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

// TestPreemption: a critical pod preempts another pod on a full node. The other pod is ready until it has
// terminated, and its status has the reason.
func TestPreemption(t *testing.T) {
	t.Parallel()
	in := clearedNamespace(t)
	node, err := addNode(t.Context(), "crowded", bed.KubeletOptions{Kind: kubelet, Config: "maxPods: 1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	cluster.ShowLogs(t)

	victim := sleeper("victim", node.Name())
	// It fails on SIGTERM: with exit code 0 its phase would be Succeeded with the reference.
	victim.Spec.Containers[0].Command = []string{"sh", "-c", "trap 'sleep 4; exit 1' TERM; while :; do sleep 3600 & wait; done"}
	create(t, in, victim)
	awaitPod(t, in, "victim", timeout, ready)

	critical := sleeper("critical", node.Name())
	critical.Spec.NodeName = node.Name() // bypasses the scheduler, which would see that the node is full
	critical.Spec.PriorityClassName = "system-node-critical"
	create(t, in, critical)
	ended := awaitPod(t, in, "victim", timeout, func(p *corev1.Pod) string {
		if p.Status.Phase == corev1.PodFailed {
			return ""
		}
		if missing := ready(p); missing != "" && p.Status.ContainerStatuses[0].State.Running != nil {
			t.Errorf("while the pod is running: %s", missing)
		}
		return fmt.Sprintf("the pod has not failed: %s", p.Status.Phase)
	})
	if ended.Status.Reason != "Preempting" || ended.Status.Message != "Preempted in order to admit critical pod" {
		t.Errorf("status is %s: %s", ended.Status.Reason, ended.Status.Message)
	}
	var condition *corev1.PodCondition
	for i, c := range ended.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			condition = &ended.Status.Conditions[i]
		}
	}
	if condition == nil || condition.Reason != corev1.PodReasonTerminationByKubelet || condition.Message != "Pod was preempted by Kubelet to accommodate a critical pod." {
		t.Errorf("condition DisruptionTarget is %v", condition)
	}
	begun := awaitPod(t, in, "critical", timeout, ready)
	before := ended.Status.ContainerStatuses[0].State.Terminated.FinishedAt
	if after := begun.Status.ContainerStatuses[0].State.Running.StartedAt; after.Before(&before) {
		t.Errorf("the critical pod started at %v, before the other terminated at %v", after, before)
	}

	awaitMetrics(t, node, nil, map[string]float64{`kubelet_preemptions{preemption_signal="pods"}`: 1})

	// There are no more pods to preempt.
	now := finalStateView(t, node, in)
	for _, class := range []string{"", "system-node-critical"} {
		name := "extra"
		if class != "" {
			name = "extra-critical"
		}
		extra := sleeper(name, node.Name())
		extra.Spec.NodeName, extra.Spec.PriorityClassName = node.Name(), class
		create(t, in, extra)
		compareFinalState(t, now, in, name, name)
	}
}
