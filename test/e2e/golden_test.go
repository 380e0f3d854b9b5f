package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestGolden runs pods that the reference was recorded with, and wants their status to be
// the same, at one time, as it was in the recording.
func TestGolden(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	cases := []struct {
		name  string
		limit time.Duration
	}{
		{"ok", usual},
		{"hostnet", usual},
		{"crash", 90 * time.Second}, // three restarts, 10 s and 20 s of back-off between them
	}
	for _, c := range cases {
		create(t, space, manifest(t, testdata(t, c.name+".yaml"), node.Name()))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := comparable(recorded(t, c.name+"-status.yaml"))
			var nearest string // a pod passes through many states: the shortest difference tells most
			awaitPod(t, space, c.name, c.limit, func(pod *corev1.Pod) string {
				if pod == nil {
					return "the pod is not there"
				}
				diff := difference(want, comparable(facts(t, pod.Status, node.Address())))
				if nearest == "" || len(diff) < len(nearest) {
					nearest = diff
				}
				return nearest
			})
		})
	}
	t.Run("crash waits", func(t *testing.T) {
		t.Parallel()
		awaitPod(t, space, "crash", 90*time.Second, func(pod *corev1.Pod) string {
			if pod == nil || len(pod.Status.ContainerStatuses) != 1 || pod.Status.ContainerStatuses[0].State.Waiting == nil {
				return "the container is not waiting"
			}
			want := corev1.ContainerStateWaiting{
				Reason:  "CrashLoopBackOff",
				Message: fmt.Sprintf("back-off 20s restarting failed container=c pod=crash_%s(%s)", space, pod.UID),
			}
			return difference(want, *pod.Status.ContainerStatuses[0].State.Waiting)
		})
	})
}

// comparable takes out of a status what two kubelets need not agree on.
func comparable(status map[string]any) map[string]any {
	containers, _ := status["containerStatuses"].([]any)
	for _, container := range containers {
		endOfBackOff(container.(map[string]any))
	}
	return without(status, "the reference shows cgroup v1's word for no limit", "resources")
}

// endOfBackOff shows a container that waits for its restart as ended, which is what it was
// a moment before: nobody who watches is promised to see both.
func endOfBackOff(container map[string]any) {
	state, _ := container["state"].(map[string]any)
	waiting, _ := state["waiting"].(map[string]any)
	last, _ := container["lastState"].(map[string]any)
	if waiting["reason"] == "CrashLoopBackOff" && last["terminated"] != nil {
		container["state"] = map[string]any{"terminated": last["terminated"]}
	}
}
