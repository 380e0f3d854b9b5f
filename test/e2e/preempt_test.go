package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

// A critical pod that finds the node full takes another's place. The other serves until it
// has ended, and says why it did.
func TestACriticalPodTakesAPlace(t *testing.T) {
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
	// It fails when it is told to end: the reference says of one that exits with 0 that it
	// has succeeded.
	victim.Spec.Containers[0].Command = []string{"sh", "-c", "trap 'sleep 4; exit 1' TERM; while :; do sleep 3600 & wait; done"}
	create(t, in, victim)
	awaitPod(t, in, "victim", usual, ready)

	critical := sleeper("critical", node.Name())
	critical.Spec.NodeName = node.Name() // the scheduler would see that the node is full
	critical.Spec.PriorityClassName = "system-node-critical"
	create(t, in, critical)
	ended := awaitPod(t, in, "victim", usual, func(p *corev1.Pod) string {
		if p.Status.Phase == corev1.PodFailed {
			return ""
		}
		if missing := ready(p); missing != "" && p.Status.ContainerStatuses[0].State.Running != nil {
			t.Errorf("while it runs: %s", missing)
		}
		return fmt.Sprintf("the pod goes on: %s", p.Status.Phase)
	})
	if ended.Status.Reason != "Preempting" || ended.Status.Message != "Preempted in order to admit critical pod" {
		t.Errorf("it says %s: %s", ended.Status.Reason, ended.Status.Message)
	}
	var told *corev1.PodCondition
	for i, c := range ended.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			told = &ended.Status.Conditions[i]
		}
	}
	if told == nil || told.Reason != corev1.PodReasonTerminationByKubelet || told.Message != "Pod was preempted by Kubelet to accommodate a critical pod." {
		t.Errorf("its disruption is told as %v", told)
	}
	begun := awaitPod(t, in, "critical", usual, ready)
	before := ended.Status.ContainerStatuses[0].State.Terminated.FinishedAt
	if after := begun.Status.ContainerStatuses[0].State.Running.StartedAt; after.Before(&before) {
		t.Errorf("it began at %v, before the other ended at %v", after, before)
	}

	// Nothing is left to make room with.
	now := endView(t, node, in)
	for _, class := range []string{"", "system-node-critical"} {
		name := "extra"
		if class != "" {
			name = "extra-critical"
		}
		extra := sleeper(name, node.Name())
		extra.Spec.NodeName, extra.Spec.PriorityClassName = node.Name(), class
		create(t, in, extra)
		compareEnd(t, now, in, name, name)
	}
}
