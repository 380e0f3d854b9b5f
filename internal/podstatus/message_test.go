package podstatus

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/clip"
	"swiftlet/internal/pod"
)

// The API server refuses a status that is too large, and so all that comes after it. The name of an image, which is
// in the messages of failed pulls, has no limit.
func TestMessagesAreLimited(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	p := newPod(v1.RestartPolicyAlways, "a")
	s := Compute(Input{Pod: p, Observed: &pod.Observed{}, Now: now, Waiting: map[string]pod.Waiting{"a": {Reason: "InvalidImageName", Message: long}}})
	if waiting := s.ContainerStatuses[0].State.Waiting; waiting == nil || waiting.Message == "" || len(waiting.Message) > clip.Message {
		t.Errorf("waiting: %.100v", waiting)
	}
	for _, rejected := range []bool{false, true} {
		s = Compute(Input{Pod: p, Observed: &pod.Observed{}, Now: now, Failure: &pod.Failure{Reason: "Failed", Message: long, Rejected: rejected}})
		if s.Message == "" || len(s.Message) > maxPodMessage {
			t.Errorf("rejected %t: a message of %d bytes", rejected, len(s.Message))
		}
	}
}
