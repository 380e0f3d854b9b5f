package e2e

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// recordedMessage is the length to which messages were cut in the recording.
const recordedMessage = 160

// execID matches the ID of an exec process, which may be cut.
var execID = regexp.MustCompile(`\b[0-9a-f]{20,}`)

// eventKey is an event without times and count.
func eventKey(v view, kind, reason, message, fieldPath, component string) string {
	message = v.replaced.Replace(message) // before cutting, as namespaces have different lengths
	message = v.text(message[:min(len(message), recordedMessage)])
	message = execID.ReplaceAllString(message, "<id>")
	return strings.Join([]string{kind, reason, message, fieldPath, component}, " | ")
}

// awaitEvents waits until the pod has the events of the recording, and otherwise reports the
// differences. Events are sent asynchronously, after the status.
func awaitEvents(t *testing.T, now view, namespace, pod string, uid types.UID) {
	t.Helper()
	want := recordedEvents(t, pod)
	var found []string
	for deadline := time.Now().Add(timeout / 2); ; time.Sleep(100 * time.Millisecond) {
		found = eventDifferences(pod, want, listEvents(t, now, namespace, pod, uid))
		if unexplained(found) == "" || time.Now().After(deadline) {
			break
		}
	}
	report(t, found)
}

func eventDifferences(pod string, want, have []string) []string {
	var found []string
	for _, event := range want {
		if !slices.Contains(have, event) {
			found = append(found, pod+" events: missing: "+event)
		}
	}
	for _, event := range have {
		if !slices.Contains(want, event) {
			found = append(found, pod+" events: not recorded: "+event)
		}
	}
	return found
}

func recordedEvents(t *testing.T, pod string) []string {
	t.Helper()
	var events []string
	for line := range strings.Lines(string(testdata(t, "golden/events.tsv"))) {
		field := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(field) != 7 {
			t.Fatalf("events.tsv has a line with %d fields: %q", len(field), line)
		}
		if field[4] == pod {
			events = append(events, eventKey(recording, field[0], field[1], field[2], field[5], field[6]))
		}
	}
	if len(events) == 0 {
		t.Fatalf("the recording has no event of %s", pod)
	}
	return events
}

// listEvents lists the events of the pod; with a UID only those with that UID.
func listEvents(t *testing.T, now view, namespace, pod string, uid types.UID) []string {
	t.Helper()
	list, err := client().CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, e := range list.Items {
		about := e.InvolvedObject
		if about.Kind != "Pod" || about.Name != pod || uid != "" && about.UID != uid {
			continue
		}
		events = append(events, eventKey(now, e.Type, e.Reason, e.Message,
			cmp.Or(about.FieldPath, "None"), component(&e)))
	}
	slices.Sort(events)
	return slices.Compact(events)
}

func component(e *corev1.Event) string { return cmp.Or(e.Source.Component, e.ReportingController) }
