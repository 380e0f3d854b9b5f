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
	running := &pod.Observed{Sandboxes: []pod.Sandbox{{ID: "s", Ready: true, IPs: []string{"10.0.0.1"}}}, Containers: []pod.Container{{ID: "c", SandboxID: "s", Name: "a", State: pod.Running}}}
	for range 10000 {
		p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, v1.PodReadinessGate{ConditionType: "example.com/gate"})
	}
	s = Compute(Input{Pod: p, Observed: running, Now: now})
	if ready := find(s.Conditions, v1.PodReady); ready.Reason != "ReadinessGatesNotReady" || len(ready.Message) > maxPodMessage {
		t.Errorf("ready: %s with a message of %d bytes", ready.Reason, len(ready.Message))
	}
}
