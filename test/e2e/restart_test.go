package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

// TestAgentKilled kills and restarts the agent with pods running: containers and statuses of the pods do not
// change.
func TestAgentKilled(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "restarted")
	space := namespace(t)
	probed := sleeper("probed", node.Name())
	probed.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
		PeriodSeconds: 1,
	}
	before := map[string]*corev1.Pod{}
	for _, pod := range []*corev1.Pod{sleeper("plain", node.Name()), probed} {
		create(t, space, pod)
	}
	stops := map[string]func() []*corev1.Pod{}
	for _, name := range []string{"plain", "probed"} {
		before[name] = awaitPod(t, space, name, timeout, ready)
		stops[name] = record[corev1.Pod](t, pods(space), name)
	}

	if err := node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}); err != nil {
		t.Fatal(err)
	}
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	// When a new pod is ready, the new agent has synced the older ones.
	create(t, space, sleeper("later", node.Name()))
	awaitPod(t, space, "later", timeout, ready)

	for name, stop := range stops {
		for _, version := range stop() {
			missing := ready(version)
			if kubelet == bed.Reference && name == "probed" {
				missing = "" // the reference loses the probe's result
			}
			if missing != "" {
				t.Errorf("%s: %s", name, missing)
				continue
			}
			checkSameContainers(t, before[name], version)
		}
	}
}

// checkSameContainers checks that the pod has the same containers, without restarts.
func checkSameContainers(t *testing.T, before, after *corev1.Pod) {
	t.Helper()
	if len(after.Status.ContainerStatuses) != len(before.Status.ContainerStatuses) {
		t.Errorf("%s has statuses of %d containers, had %d", after.Name,
			len(after.Status.ContainerStatuses), len(before.Status.ContainerStatuses))
		return
	}
	for i, container := range after.Status.ContainerStatuses {
		if was := before.Status.ContainerStatuses[i]; container.ContainerID != was.ContainerID {
			t.Errorf("%s: container is %s, was %s", after.Name, container.ContainerID, was.ContainerID)
		}
		if container.RestartCount != 0 {
			t.Errorf("%s: container was restarted %d times", after.Name, container.RestartCount)
		}
	}
}
