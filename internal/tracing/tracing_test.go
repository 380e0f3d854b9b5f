package tracing

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
	"swiftlet/internal/worker"
)

func recording() (*Provider, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	return newProvider(sdktrace.WithSpanProcessor(recorder)), recorder
}

// TestCRIPropagatesTrace checks the metadata that a runtime receives.
func TestCRIPropagatesTrace(t *testing.T) {
	p, _ := recording()
	var received []string
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(s.Context())
		received = md.Get("traceparent")
		return errors.New("unimplemented")
	}))
	listener := bufconn.Listen(1 << 16)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	defer func() { server.Stop(); <-done }()
	client, err := cri.Dial(cri.Config{
		RuntimeEndpoint: "/runtime.sock",
		RequestTimeout:  10 * time.Second,
		Dial:            func(ctx context.Context) (net.Conn, error) { return listener.DialContext(ctx) },
		StatsHandler:    p.CRI(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, span := p.tracer().Start(t.Context(), "step")
	if _, err := client.Version(ctx); err == nil {
		t.Error("the call succeeded")
	}
	if len(received) != 1 || !strings.Contains(received[0], span.SpanContext().TraceID().String()) {
		t.Errorf("the call carries %q, want trace %s", received, span.SpanContext().TraceID())
	}
}

func TestHTTP(t *testing.T) {
	p, recorder := recording()
	routes := http.NewServeMux()
	routes.HandleFunc("/containerLogs/{namespace}/{pod}", func(w http.ResponseWriter, r *http.Request) {
		if !trace.SpanFromContext(r.Context()).IsRecording() {
			t.Error("the handler runs without a span")
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	request := httptest.NewRequest(http.MethodGet, "/containerLogs/a/b", nil)
	const clientTrace = "0af7651916cd43dd8448eb211c80319c"
	request.Header.Set("traceparent", "00-"+clientTrace+"-b7ad6b7169203331-01")
	p.HTTP(routes).ServeHTTP(httptest.NewRecorder(), request)

	ended := recorder.Ended()
	if len(ended) != 1 {
		t.Fatalf("%d spans, want 1", len(ended))
	}
	span := ended[0]
	if span.Name() != "/containerLogs/{namespace}/{pod}" || span.Status().Code != codes.Error || span.SpanKind() != trace.SpanKindServer {
		t.Errorf("span %q of kind %v with status %v", span.Name(), span.SpanKind(), span.Status())
	}
	if span.Parent().IsValid() || span.SpanContext().TraceID().String() == clientTrace {
		t.Error("the request is part of the client's trace")
	}
	if links := span.Links(); len(links) != 1 || links[0].SpanContext.TraceID().String() != clientTrace {
		t.Errorf("links %v, want the client's trace", links)
	}
}

// fakeSteps returns err from every step.
type fakeSteps struct{ err error }

func (s fakeSteps) Sync(context.Context, pod.Work) (pod.Outcome, error) { return pod.Outcome{}, s.err }
func (s fakeSteps) Stop(context.Context, pod.Work) error                { return s.err }
func (s fakeSteps) Finish(context.Context, pod.Work) error              { return s.err }
func (s fakeSteps) Remove(context.Context, pod.Work) error              { return s.err }

// TestSteps runs all steps of a pod. Until its containers run, the steps are one trace, which
// starts when the kubelet first saw the pod.
func TestSteps(t *testing.T) {
	p, recorder := recording()
	seen := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	work := pod.Work{Pod: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "a", Annotations: map[string]string{pod.AnnotationSeen: seen.Format(time.RFC3339Nano)}},
		Spec:       v1.PodSpec{Containers: make([]v1.Container, 1)},
	}}
	var status v1.PodStatus
	steps := p.Steps(func() worker.Steps { return fakeSteps{} }, func(types.UID) (v1.PodStatus, bool) { return status, true })()
	sync := func() {
		if _, err := steps.Sync(t.Context(), work); err != nil {
			t.Fatal(err)
		}
	}
	sync()
	if n := len(recorder.Ended()); n != 1 {
		t.Fatalf("%d spans have ended while the pod starts, want 1", n)
	}
	status.ContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
	sync() // ends the start
	sync() // a trace of its own
	if err := errors.Join(steps.Stop(t.Context(), work), steps.Finish(t.Context(), work), steps.Remove(t.Context(), work)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range recorder.Ended() {
		names = append(names, s.Name())
	}
	if got := strings.Join(names, " "); got != "syncPod syncPod podStart syncPod syncTerminatingPod syncTerminatedPod" {
		t.Fatal(got)
	}
	root := recorder.Ended()[2]
	if !root.StartTime().Equal(seen) {
		t.Errorf("the start began at %v, want %v", root.StartTime(), seen)
	}
	for i, s := range recorder.Ended() {
		part := i < 3
		if same := s.SpanContext().TraceID() == root.SpanContext().TraceID(); same != part {
			t.Errorf("span %d (%s): part of the start: %v, want %v", i, s.Name(), same, part)
		}
		if child := s.Parent().SpanID() == root.SpanContext().SpanID(); child != (i < 2) {
			t.Errorf("span %d (%s): child of the start: %v", i, s.Name(), child)
		}
	}
}

// TestNoStart: a pod that already runs when the kubelet starts has no start; stopping a pod ends its
// start.
func TestNoStart(t *testing.T) {
	p, recorder := recording()
	running := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}}
	old := pod.Work{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "old"}, Spec: v1.PodSpec{Containers: make([]v1.Container, 1)}, Status: running}}
	broken := pod.Work{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "broken"}, Spec: v1.PodSpec{Containers: make([]v1.Container, 1)}}}
	failure := errors.New("broken")
	newSteps := p.Steps(func() worker.Steps { return fakeSteps{failure} }, func(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{}, false })
	for _, w := range []pod.Work{old, broken} {
		steps := newSteps()
		if _, err := steps.Sync(t.Context(), w); !errors.Is(err, failure) {
			t.Fatal(err)
		}
		if err := steps.Stop(t.Context(), w); !errors.Is(err, failure) {
			t.Fatal(err)
		}
	}
	var names []string
	for _, s := range recorder.Ended() {
		names = append(names, s.Name())
		if s.Name() == "syncPod" && s.Status().Code != codes.Error {
			t.Error("the span of a failed step has no error status")
		}
	}
	if got := strings.Join(names, " "); got != "syncPod syncTerminatingPod syncPod podStart syncTerminatingPod" {
		t.Error(got)
	}
}
