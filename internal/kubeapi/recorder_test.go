package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"swiftlet/test/poll"
)

var testObject = &v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "ns", Name: "p", UID: "u", FieldPath: "spec.containers{c}"}

func newRecorder(t *testing.T, client *fake.Clientset) (*Recorder, *testclock.FakeClock) {
	t.Helper()
	clk := testclock.NewFakeClock(time.Unix(1_800_000_000, 0))
	deps := RecorderDeps{Clock: clk, Log: slog.New(slog.DiscardHandler)}
	if client != nil {
		deps.Client = client.CoreV1()
	}
	r, err := NewRecorder(RecorderConfig{Component: "kubelet", Host: "node-1"}, deps)
	if err != nil {
		t.Fatal(err)
	}
	return r, clk
}

func run(t *testing.T, r *Recorder) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func written(t *testing.T, client *fake.Clientset) []v1.Event {
	t.Helper()
	list, err := client.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestEventIsWritten(t *testing.T) {
	client := fake.NewClientset()
	r, clk := newRecorder(t, client)
	r.Eventf(testObject, v1.EventTypeWarning, "Failed", "no %s", "luck") // before Run
	run(t, r)
	poll.Until(t, "the event", func() bool { return len(written(t, client)) == 1 })
	now := metav1.NewTime(clk.Now())
	want := v1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: fmt.Sprintf("p.%x", now.UnixNano()), Namespace: "ns"},
		InvolvedObject:      *testObject,
		Type:                v1.EventTypeWarning,
		Reason:              "Failed",
		Message:             "no luck",
		Count:               1,
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Source:              v1.EventSource{Component: "kubelet", Host: "node-1"},
		ReportingController: "kubelet",
		ReportingInstance:   "node-1",
	}
	got := written(t, client)[0]
	got.ManagedFields, got.TypeMeta = nil, metav1.TypeMeta{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRepeatedEventIsCounted(t *testing.T) {
	client := fake.NewClientset()
	r, _ := newRecorder(t, client)
	run(t, r)
	for range 3 {
		r.Eventf(testObject, v1.EventTypeNormal, "Pulled", "same")
	}
	poll.Until(t, "the count", func() bool { e := written(t, client); return len(e) == 1 && e[0].Count == 3 })
}

func TestRejectedEventIsDropped(t *testing.T) {
	client := fake.NewClientset()
	reject := true
	client.PrependReactor("create", "events", func(ktesting.Action) (bool, runtime.Object, error) {
		if reject {
			reject = false
			return true, nil, &statusForbidden
		}
		return false, nil, nil
	})
	r, _ := newRecorder(t, client)
	run(t, r)
	r.Eventf(testObject, v1.EventTypeNormal, "One", "refused")
	r.Eventf(testObject, v1.EventTypeNormal, "Two", "taken")
	poll.Until(t, "the second event", func() bool { e := written(t, client); return len(e) == 1 && e[0].Reason == "Two" })
}

func TestUnreachableServerIsRetried(t *testing.T) {
	client := fake.NewClientset()
	tries := 0
	client.PrependReactor("create", "events", func(ktesting.Action) (bool, runtime.Object, error) {
		tries++
		return tries == 1, nil, errors.New("connection refused")
	})
	r, clk := newRecorder(t, client)
	run(t, r)
	r.Eventf(testObject, v1.EventTypeNormal, "One", "late")
	poll.Until(t, "the pause", clk.HasWaiters)
	clk.Step(writeRetryInterval)
	poll.Until(t, "the event", func() bool { return len(written(t, client)) == 1 })
}

func TestRecentEventsWithoutAPIServer(t *testing.T) {
	r, _ := newRecorder(t, nil)
	for i := range maxRecentEvents + 10 {
		r.Eventf(testObject, v1.EventTypeNormal, "N", "%d", i)
	}
	got := r.Recent()
	if len(got) != maxRecentEvents || got[0].Message != "10" || got[maxRecentEvents-1].Message != fmt.Sprint(maxRecentEvents+9) {
		t.Errorf("%d recent events, from %s to %s", len(got), got[0].Message, got[len(got)-1].Message)
	}
}
