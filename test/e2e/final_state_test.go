package e2e

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"swiftlet/test/bed"
)

// recordEnds writes the recordings; use it with SWIFTLET_BED_KUBELET=reference.
var recordEnds = flag.Bool("record-ends", false, "record the final status and events of pods in testdata/ends")

// machineAmounts matches the host-dependent part of a rejection message.
var machineAmounts = regexp.MustCompile(`used: \d+, capacity: \d+`)

// finalState is the final status of a pod, and its events.
type finalState struct {
	Status any      `json:"status"`
	Events []string `json:"events"`
}

// finalStateView is the view of the pods of a namespace.
func finalStateView(t *testing.T, node *bed.Box, space string) view {
	t.Helper()
	return viewOf(t, node, space, "<namespace>", " to "+node.Name(), " to <node>")
}

// compareFinalState waits until the pod has failed, and compares its status and events with the recording.
func compareFinalState(t *testing.T, now view, space, pod, recording string) {
	t.Helper()
	file := filepath.Join("ends", recording+".yaml")
	awaitPod(t, space, pod, timeout, failed)
	if *recordEnds {
		time.Sleep(5 * time.Second) // events and further statuses are sent asynchronously
		text, err := yaml.Marshal(readFinalState(t, now, space, pod))
		if err == nil {
			err = os.WriteFile(filepath.Join("testdata", file), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	var want finalState
	if err := yaml.UnmarshalStrict(testdata(t, file), &want); err != nil {
		t.Fatal(err)
	}
	var found []string
	for deadline := time.Now().Add(timeout / 3); ; time.Sleep(100 * time.Millisecond) {
		have := readFinalState(t, now, space, pod)
		found = append(differences(pod+" status", want.Status, have.Status), eventDifferences(pod, want.Events, have.Events)...)
		if unexplained(found) == "" || time.Now().After(deadline) {
			break
		}
	}
	report(t, found)
}

// readFinalState reads the pod's final status and events, normalized by the view.
func readFinalState(t *testing.T, now view, space, pod string) finalState {
	t.Helper()
	object := awaitPod(t, space, pod, timeout, func(*corev1.Pod) string { return "" })
	status := now.status(t, object.Status).(map[string]any)
	if message, ok := status["message"].(string); ok {
		status["message"] = machineAmounts.ReplaceAllString(message, "used: <n>, capacity: <n>")
	}
	events := listEvents(t, now, space, pod, object.UID)
	for i, event := range events {
		events[i] = machineAmounts.ReplaceAllString(event, "used: <n>, capacity: <n>")
	}
	slices.Sort(events)
	return finalState{status, slices.Compact(events)}
}
