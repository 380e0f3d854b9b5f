package probe

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

func check(t *testing.T, target Target) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if target.Container == nil {
		target.Container = &v1.Container{Name: "c"}
	}
	target.PodIP, target.Pod = "127.0.0.1", &v1.Pod{}
	return NewChecks(nil).Check(ctx, target)
}

func portAt(t *testing.T, address string) int {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return a.Port
}

func TestHTTP(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("User-Agent") != "kube-probe/1.37" || r.Header.Get("Accept") != "*/*" {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	mux.HandleFunc("/header", func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "example" || r.Header.Get("X-Key") != "v" {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	mux.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.Handle("/home", http.RedirectHandler("/bad", http.StatusFound))
	mux.Handle("/away", http.RedirectHandler("http://elsewhere.invalid/bad", http.StatusFound))
	plain, secure := httptest.NewServer(mux), httptest.NewTLSServer(mux)
	defer plain.Close()
	defer secure.Close()

	for _, c := range []struct {
		name   string
		get    v1.HTTPGetAction
		result pod.Result
		output string
	}{
		{"ok", v1.HTTPGetAction{Path: "/ok"}, pod.Passed, ""},
		{"https with any certificate", v1.HTTPGetAction{Path: "/ok", Scheme: v1.URISchemeHTTPS}, pod.Passed, ""},
		{"headers and host", v1.HTTPGetAction{Path: "/header", HTTPHeaders: []v1.HTTPHeader{{Name: "Host", Value: "example"}, {Name: "X-Key", Value: "v"}}}, pod.Passed, ""},
		{"status 500", v1.HTTPGetAction{Path: "/bad"}, pod.Failed, "HTTP probe failed with statuscode: 500"},
		{"too slow", v1.HTTPGetAction{Path: "/slow"}, pod.Failed, "context deadline exceeded"},
		{"redirect to same host is followed", v1.HTTPGetAction{Path: "/home"}, pod.Failed, "statuscode: 500"},
		{"redirect to another host is not followed", v1.HTTPGetAction{Path: "/away"}, pod.Passed, "Probe terminated redirects, Response body: <a href"},
		{"unknown port name", v1.HTTPGetAction{Port: intstr.FromString("nope")}, pod.ProbeUnknown, "invalid port number: nope"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := plain
			if c.get.Scheme == v1.URISchemeHTTPS {
				server = secure
			}
			if c.get.Port.StrVal == "" {
				c.get.Port = intstr.FromInt32(int32(portAt(t, server.Listener.Addr().String())))
			}
			got := check(t, Target{Probe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &c.get}}})
			if got.Result != c.result || !strings.Contains(got.Output, c.output) {
				t.Errorf("got %v %q, want %v %q", got.Result, got.Output, c.result, c.output)
			}
			if away := c.get.Path == "/away"; got.Warning != away {
				t.Errorf("warning is %v, want %v", got.Warning, away)
			}
		})
	}
}

func TestTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := portAt(t, l.Addr().String())
	named := &v1.Container{Name: "c", Ports: []v1.ContainerPort{{Name: "http", ContainerPort: int32(port)}}}
	probe := &v1.Probe{ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromString("http")}}}
	if got := check(t, Target{Probe: probe, Container: named}); got.Result != pod.Passed {
		t.Errorf("open port: %v %q", got.Result, got.Output)
	}
	l.Close()
	if got := check(t, Target{Probe: probe, Container: named}); got.Result != pod.Failed || !strings.Contains(got.Output, "connection refused") {
		t.Errorf("closed port: %v %q", got.Result, got.Output)
	}
}

func TestGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := serveHealth(t, l)
	service.SetServingStatus("down", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	call := func(name *string) Outcome {
		return check(t, Target{Probe: &v1.Probe{TimeoutSeconds: 1, ProbeHandler: v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: int32(portAt(t, l.Addr().String())), Service: name}}}})
	}
	if got := call(nil); got.Result != pod.Passed {
		t.Errorf("serving: %v %q", got.Result, got.Output)
	}
	if got := call(ptr.To("down")); got.Result != pod.Failed || got.Output != `service unhealthy (responded with "NOT_SERVING")` {
		t.Errorf("not serving: %v %q", got.Result, got.Output)
	}
}

// serveHealth serves the standard health service at l until the test ends.
func serveHealth(t *testing.T, l net.Listener, how ...grpc.ServerOption) *health.Server {
	server, service := grpc.NewServer(how...), health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, service)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return service
}

type execer func() (cri.ExecResult, error)

func (e execer) ExecSync(context.Context, string, []string, time.Duration) (cri.ExecResult, error) {
	return e()
}

func TestExec(t *testing.T) {
	for _, c := range []struct {
		name   string
		exec   execer
		result pod.Result
		output string
	}{
		{"exit 0", func() (cri.ExecResult, error) { return cri.ExecResult{Stdout: []byte("hi")}, nil }, pod.Passed, "hi"},
		{"exit 1", func() (cri.ExecResult, error) { return cri.ExecResult{Stderr: []byte("no"), ExitCode: 1}, nil }, pod.Failed, "no"},
		{"timeout", func() (cri.ExecResult, error) { return cri.ExecResult{}, context.DeadlineExceeded }, pod.Failed, `command timed out: "sh -c x" timed out after 1s`},
		{"runtime error", func() (cri.ExecResult, error) { return cri.ExecResult{}, errors.New("broken") }, pod.ProbeUnknown, "broken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := NewChecks(c.exec).Check(t.Context(), Target{Container: &v1.Container{}, Probe: &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"sh", "-c", "x"}}}}})
			if got.Result != c.result || got.Output != c.output {
				t.Errorf("got %v %q, want %v %q", got.Result, got.Output, c.result, c.output)
			}
		})
	}
}

// TestOutputIsLimited: no kind of probe returns more than 10 KiB, whatever the pod sends.
func TestOutputIsLimited(t *testing.T) {
	flood := strings.Repeat("x", 8<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			w.Header().Set("Location", "/"+flood[:1<<20])
			w.WriteHeader(http.StatusFound)
		case "/header":
			w.Header().Set("Location", "http://%%"+flood[:1<<20])
			w.WriteHeader(http.StatusFound)
		default:
			_, _ = w.Write([]byte(flood))
		}
	}))
	defer server.Close()
	get := func(path string) Target {
		return Target{Probe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: path, Port: intstr.FromInt(portAt(t, server.Listener.Addr().String()))}}}}
	}
	exec := func(result cri.ExecResult, err error) Outcome {
		return NewChecks(execer(func() (cri.ExecResult, error) { return result, err })).Check(t.Context(), Target{
			Container: &v1.Container{}, Probe: &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{flood}}}},
		})
	}
	for name, got := range map[string]Outcome{
		"exec, passed":        exec(cri.ExecResult{Stdout: []byte(flood), Stderr: []byte(flood)}, nil),
		"exec, failed":        exec(cri.ExecResult{Stdout: []byte(flood), ExitCode: 1}, nil),
		"exec, timed out":     exec(cri.ExecResult{}, context.DeadlineExceeded),
		"exec, runtime error": exec(cri.ExecResult{}, errors.New(flood)),
		"HTTP body":           check(t, get("/body")),
		"HTTP redirect":       check(t, get("/redirect")),
		"HTTP bad location":   check(t, get("/header")),
	} {
		if len(got.Output) > 10<<10 {
			t.Errorf("%s: %d bytes of output", name, len(got.Output))
		}
	}
}

// A pod may answer every probe with headers as long as the client accepts them, all at the same time.
func TestHeadersAreLimited(t *testing.T) {
	long := strings.Repeat("x", 128<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", long) }))
	defer server.Close()
	port := portAt(t, server.Listener.Addr().String())
	if got := check(t, Target{Probe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt(port)}}}}); got.Result != pod.Failed {
		t.Errorf("HTTP: %v %q", got.Result, got.Output)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveHealth(t, l, grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		_ = grpc.SetHeader(ctx, metadata.Pairs("x", long))
		return handle(ctx, request)
	}))
	action := &v1.GRPCAction{Port: int32(portAt(t, l.Addr().String()))}
	if got := check(t, Target{Probe: &v1.Probe{ProbeHandler: v1.ProbeHandler{GRPC: action}}}); got.Result != pod.Failed {
		t.Errorf("gRPC: %v %q", got.Result, got.Output)
	}
}
