package podsync

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume"
)

type eventLog []string

func (e *eventLog) Eventf(_ runtime.Object, kind, reason, format string, args ...any) {
	*e = append(*e, kind+" "+reason+": "+fmt.Sprintf(format, args...))
}

func TestReject(t *testing.T) {
	var events eventLog
	var counted []string
	s := &Steps{deps: Deps{Events: &events, Meters: Meters{Rejected: func(_ *v1.Pod, reason string) { counted = append(counted, reason) }}}}
	p := &v1.Pod{}
	for _, passes := range []error{nil, &volume.MountError{Cause: errors.New("no such disk")}} {
		if got := s.reject(p, passes); got != nil || len(events) > 0 || len(counted) > 0 {
			t.Errorf("%v: rejected with %+v, %q, %q", passes, got, events, counted)
		}
	}
	full := &volume.AttachLimitError{Unmounted: []string{"a", "b"}, Unattached: []string{"b"}}
	got := s.reject(p, errors.Join(nil, podFailure{full}))
	const message = "Node has reached its volume attachment limit, rejecting pod. unmounted volumes=[a b], unattached volumes=[b], failed to process volumes=[]: context deadline exceeded"
	if got == nil || got.Reason != "VolumeAttachmentLimitExceeded" || got.Message != "Pod was rejected: "+message || got.Rejected {
		t.Errorf("rejected with %+v", got)
	}
	if want := "Warning VolumeAttachmentLimitExceeded: " + message; len(events) != 1 || events[0] != want {
		t.Errorf("events %q", events)
	}
	if len(counted) != 1 || counted[0] != "VolumeAttachmentLimitExceeded" {
		t.Errorf("counted %q", counted)
	}
}

// emptyObserver has no pods.
type emptyObserver struct{ Observer }

func (emptyObserver) Get(types.UID) (pod.Observed, bool) { return pod.Observed{}, false }

func TestFailedAllocationIsRejection(t *testing.T) {
	s := &Steps{deps: Deps{Events: &eventLog{}, Observer: emptyObserver{}}}
	want := &pod.Failure{Reason: "UnexpectedAdmissionError", Message: "Pod was rejected: Allocate failed", Rejected: true}
	got := s.reject(&v1.Pod{}, errors.Join(errors.New("other"), podFailure{pod.Reject("UnexpectedAdmissionError", "Allocate failed")}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
