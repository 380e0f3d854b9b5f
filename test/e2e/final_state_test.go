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

// recordEnds writes the recordings of the reference: with SWIFTLET_BED_KUBELET=reference.
var recordEnds = flag.Bool("record-ends", false, "write how pods end to testdata/ends")

// machineAmounts are what depends on the machine in the message of a rejection.
var machineAmounts = regexp.MustCompile(`used: \d+, capacity: \d+`)

// end is how a pod ended: its status and its events.
type end struct {
	Status any      `json:"status"`
	Events []string `json:"events"`
}

// endView is the view of pods in a namespace of their own.
func endView(t *testing.T, node *bed.Box, space string) view {
	t.Helper()
	return viewOf(t, node, space, "<namespace>", " to "+node.Name(), " to <node>")
}

// compareEnd waits until the pod has failed with the status and the events of the recording.
func compareEnd(t *testing.T, now view, space, pod, recording string) {
	t.Helper()
	file := filepath.Join("ends", recording+".yaml")
	awaitPod(t, space, pod, usual, failed)
	if *recordEnds {
		time.Sleep(5 * time.Second) // events and further statuses come on the side
		text, err := yaml.Marshal(endOf(t, now, space, pod))
		if err == nil {
			err = os.WriteFile(filepath.Join("testdata", file), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	var want end
	if err := yaml.UnmarshalStrict(testdata(t, file), &want); err != nil {
		t.Fatal(err)
	}
	var found []string
	for deadline := time.Now().Add(usual / 3); ; time.Sleep(100 * time.Millisecond) {
		have := endOf(t, now, space, pod)
		found = append(differences(pod+" status", want.Status, have.Status), eventDifferences(pod, want.Events, have.Events)...)
		if unexplained(found) == "" || time.Now().After(deadline) {
			break
		}
	}
	report(t, found)
}

// endOf reads how the pod ended, without what belongs to this run alone.
func endOf(t *testing.T, now view, space, pod string) end {
	t.Helper()
	object := awaitPod(t, space, pod, usual, func(*corev1.Pod) string { return "" })
	status := now.status(t, object.Status).(map[string]any)
	if message, ok := status["message"].(string); ok {
		status["message"] = machineAmounts.ReplaceAllString(message, "used: <n>, capacity: <n>")
	}
	events := listEvents(t, now, space, pod, object.UID)
	for i, event := range events {
		events[i] = machineAmounts.ReplaceAllString(event, "used: <n>, capacity: <n>")
	}
	slices.Sort(events)
	return end{status, slices.Compact(events)}
}
