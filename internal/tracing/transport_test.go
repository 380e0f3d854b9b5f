package tracing

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// TestTransport checks the headers that a server receives, and that a span ends with the body: a
// watch does not end when its response starts.
func TestTransport(t *testing.T) {
	p, recorder := recording()
	var received string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received = r.Header.Get("traceparent")
		if r.URL.Path == "/none" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, "answer")
	}))
	defer server.Close()
	client := &http.Client{Transport: p.Transport(http.DefaultTransport)}
	ctx, step := p.tracer().Start(t.Context(), "step")
	get := func(path string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if request.Header.Get("traceparent") != "" {
			t.Error("the caller's request is modified")
		}
		return response
	}
	response := get("/pods")
	if !strings.Contains(received, step.SpanContext().TraceID().String()) {
		t.Errorf("the request carries %q, want trace %s", received, step.SpanContext().TraceID())
	}
	if n := len(recorder.Ended()); n != 0 {
		t.Errorf("%d spans have ended before the body was read", n)
	}
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != "answer" {
		t.Errorf("body %q, %v", text, err)
	}
	response.Body.Close()
	get("/none").Body.Close() // unread
	server.Close()
	if _, err := client.Get(server.URL); err == nil {
		t.Error("a request to a closed server succeeded")
	}
	ended := recorder.Ended()
	if len(ended) != 3 {
		t.Fatalf("%d spans, want 3", len(ended))
	}
	for i, want := range []codes.Code{codes.Unset, codes.Error, codes.Error} {
		if s := ended[i]; s.Name() != "HTTP GET" || s.SpanKind() != trace.SpanKindClient || s.Status().Code != want {
			t.Errorf("span %q of kind %v with status %v, want %v", s.Name(), s.SpanKind(), s.Status(), want)
		}
	}
	if ended[0].Parent().SpanID() != step.SpanContext().SpanID() {
		t.Error("the request is not part of the step")
	}
}
