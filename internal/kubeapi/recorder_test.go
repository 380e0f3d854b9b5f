package kubeapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"swiftlet/internal/klogfmt"
	"swiftlet/test/poll"

	"swiftlet/internal/kubeclient/kubeclienttest"
)

var testObject = &v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "ns", Name: "p", UID: "u", FieldPath: "spec.containers{c}"}

func newRecorder(t *testing.T, client *fake.Clientset) (*Recorder, *testclock.FakeClock) {
	t.Helper()
	clk := testclock.NewFakeClock(time.Unix(1_800_000_000, 0))
	deps := RecorderDeps{Clock: clk, Log: slog.New(slog.DiscardHandler)}
	if client != nil {
		deps.Client = kubeclienttest.Wrap(client)
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

// TestRepeatedEventIsLoggedRarely: the log has no more of a repeated event than the API server.
func TestRepeatedEventIsLoggedRarely(t *testing.T) {
	for name, client := range map[string]*fake.Clientset{"with an API server": fake.NewClientset(), "without": nil} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			r, _ := newRecorder(t, client)
			r.deps.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: klogfmt.V3}))
			for i := range 1000 {
				r.Eventf(testObject, v1.EventTypeWarning, "BackOff", "again %d", i)
			}
			if lines := strings.Count(log.String(), "Event occurred"); lines < 10 || lines > 30 {
				t.Errorf("%d lines of log for 1000 events", lines)
			}
		})
	}
}

// TestEventMessageIsLimited: an event has at most the 1024 bytes that the API allows for a note.
func TestEventMessageIsLimited(t *testing.T) {
	var log bytes.Buffer
	r, _ := newRecorder(t, nil)
	r.deps.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: klogfmt.V3}))
	r.Eventf(testObject, v1.EventTypeWarning, "Failed", "%s", strings.Repeat("ü", 1<<20))
	got := r.Recent()[0].Message
	for i := range 20 {
		r.Eventf(testObject, v1.EventTypeWarning, "Failed", "%d%s", i, strings.Repeat("x", 1<<20))
	}
	if len(got) > 1024 || !utf8.ValidString(got) || strings.Count(log.String(), "(combined from similar events)") == 0 || log.Len() > 25*1300 {
		t.Errorf("%d bytes, valid %t, log %d bytes", len(got), utf8.ValidString(got), log.Len())
	}
}

// TestEventOfLongNameIsAccepted: the name of a pod may be as long as that of an event, which has a time, too.
func TestEventOfLongNameIsAccepted(t *testing.T) {
	r, _ := newRecorder(t, nil)
	object := *testObject
	object.Name = strings.Repeat("x", 253)
	r.Eventf(&object, v1.EventTypeWarning, "Failed", "once")
	r.Eventf(testObject, v1.EventTypeWarning, "Failed", "twice")
	if got := len(r.Recent()); got != 2 {
		t.Fatalf("%d events, want 2", got)
	}
	for _, e := range r.Recent() {
		if problems := validation.NameIsDNSSubdomain(e.Name, false); len(problems) > 0 || e.InvolvedObject.Name == "" {
			t.Errorf("event %q: %q", e.Name, problems)
		}
	}
}
