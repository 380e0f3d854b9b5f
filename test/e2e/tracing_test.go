package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"swiftlet/test/bed"
)

// spans is a fake OTLP collector.
type spans struct {
	collector.UnimplementedTraceServiceServer
	mu  sync.Mutex
	all []*tracepb.Span
}

func (s *spans) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, from := range r.ResourceSpans {
		for _, scope := range from.ScopeSpans {
			s.all = append(s.all, scope.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// snapshot returns the spans so far.
func (s *spans) snapshot() []*tracepb.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// startCollector starts a collector and returns its address for the node.
func startCollector(t *testing.T, node *bed.Box) (*spans, string) {
	t.Helper()
	toNode, err := net.Dial("udp", net.JoinHostPort(node.Address(), "9"))
	if err != nil {
		t.Fatal(err)
	}
	host := toNode.LocalAddr().(*net.UDPAddr).IP.String()
	toNode.Close()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	got, server := &spans{}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, got)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return got, listener.Addr().String()
}

// TestTracing checks that the start of a pod is one trace, with a span for each step and the CRI calls below
// their step. Requests to the API server have spans, too.
func TestTracing(t *testing.T) {
	t.Parallel()
	node := bareNode(t, "traced")
	got, address := startCollector(t, node)
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{
		Kind:   kubelet,
		Config: fmt.Sprintf("tracing: {endpoint: %q, samplingRatePerMillion: 1000000}\n", address),
	}); err != nil {
		t.Fatal(err)
	}
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	space := namespace(t)
	started := startPod(t, space, podWithInitAndVolumes("traced", node.Name()))
	if code, body := requestNode(t, node, http.MethodGet, "/pods"); code != http.StatusOK {
		t.Fatalf("/pods: %d %s", code, body)
	}

	// Each step, its parent, and the number of spans.
	want := map[string]int{"syncPod": 1}
	if kubelet == bed.Ours {
		want = map[string]int{
			"podStart":                          1,
			"syncPod < podStart":                1,
			"ensureImage < syncPod":             2,
			"mountVolumes < syncPod":            1,
			"createSandbox < syncPod":           1,
			"RunPodSandbox < createSandbox":     1,
			"createContainer < syncPod":         2,
			"CreateContainer < createContainer": 2,
			"startContainer < syncPod":          2,
			"StartContainer < startContainer":   2,
		}
	}
	deadline := time.Now().Add(timeout)
	for {
		all := got.snapshot()
		missing := missingSpans(want, podStartSpans(all, string(started.UID)))
		if !slices.ContainsFunc(all, func(s *tracepb.Span) bool {
			return s.Kind == tracepb.Span_SPAN_KIND_SERVER && strings.HasPrefix(s.Name, "/pods") && len(s.ParentSpanId) == 0
		}) {
			missing = append(missing, "the request for /pods")
		}
		// Both kubelets use this name; the lease is updated with PUT.
		if !slices.ContainsFunc(all, func(s *tracepb.Span) bool {
			return s.Kind == tracepb.Span_SPAN_KIND_CLIENT && s.Name == "HTTP PUT"
		}) {
			missing = append(missing, "a request to the API server")
		}
		if len(missing) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("missing in %d spans:\n%s", len(all), strings.Join(missing, "\n"))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// podStartSpans counts the spans in the trace of the pod's start, each as "name < parent". Calls to the runtime have
// their short name. The reference has a trace for each syncPod, so only these are counted.
func podStartSpans(all []*tracepb.Span, uid string) map[string]int {
	var trace string
	byID := map[string]*tracepb.Span{}
	for _, s := range all {
		byID[hex.EncodeToString(s.SpanId)] = s
		for _, a := range s.Attributes {
			about := a.Key == "k8s.pod.uid" && a.Value.GetStringValue() == uid
			if about && (s.Name == "podStart" || kubelet != bed.Ours && s.Name == "syncPod") {
				trace = string(s.TraceId)
			}
		}
	}
	found := map[string]int{}
	for _, s := range all {
		if string(s.TraceId) != trace {
			continue
		}
		name := s.Name[strings.LastIndex(s.Name, "/")+1:]
		if parent := byID[hex.EncodeToString(s.ParentSpanId)]; parent != nil {
			name += " < " + parent.Name
		}
		found[name]++
	}
	return found
}

func missingSpans(want, found map[string]int) []string {
	var missing []string
	for name, least := range want {
		if found[name] < least {
			missing = append(missing, fmt.Sprintf("%s: %d, want at least %d; there are %v", name, found[name], least, found))
		}
	}
	return missing
}
