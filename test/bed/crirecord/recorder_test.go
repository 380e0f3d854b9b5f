package crirecord

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/fakecri"
)

// syncBuffer is a buffer that may be read while it is written.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *syncBuffer) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *syncBuffer) lines(t *testing.T) []map[string]any {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []map[string]any
	for text := range strings.Lines(n.text.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		all = append(all, one)
	}
	return all
}

// startRecorder starts a recorder for the fake runtime and connects to it.
func startRecorder(t *testing.T, runtime *fakecri.Server) (runtimeapi.RuntimeServiceClient, *syncBuffer) {
	t.Helper()
	dir, err := os.MkdirTemp("", "crirecord") // not t.TempDir: a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	out := &syncBuffer{}
	socket := filepath.Join(dir, "cri.sock")
	recorder, err := Start(socket, strings.TrimPrefix(runtime.Endpoint(), "unix://"), out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := recorder.Close(); err != nil {
			t.Error(err)
		}
	})
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return runtimeapi.NewRuntimeServiceClient(connection), out
}

func TestCallIsForwardedAndRecorded(t *testing.T) {
	client, out := startRecorder(t, fakecri.Start(t))
	made, err := client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{
		Config: &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := out.lines(t)
	if len(lines) != 1 {
		t.Fatalf("%d lines, want 1: %v", len(lines), lines)
	}
	for _, key := range []string{"t", "ms"} {
		if lines[0][key] == nil {
			t.Errorf("line without %q", key)
		}
		delete(lines[0], key)
	}
	want := map[string]any{
		"method": "RunPodSandbox",
		"req":    map[string]any{"config": map[string]any{"metadata": map[string]any{"name": "web", "namespace": "default", "uid": "1"}}},
		"resp":   map[string]any{"podSandboxId": made.PodSandboxId},
	}
	if diff := cmp.Diff(want, lines[0]); diff != "" {
		t.Error(diff)
	}
}

func TestErrorIsForwardedAndRecorded(t *testing.T) {
	runtime := fakecri.Start(t)
	runtime.Inject("StartContainer", fakecri.Fault{Err: status.Error(codes.Aborted, "no such file")})
	client, out := startRecorder(t, runtime)
	_, err := client.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: "x"})
	if status.Code(err) != codes.Aborted || status.Convert(err).Message() != "no such file" {
		t.Errorf("got %v", err)
	}
	lines := out.lines(t)
	if len(lines) != 1 || lines[0]["err"] != "rpc error: code = Aborted desc = no such file" {
		t.Errorf("recorded %v", lines)
	}
}

func TestDeadlineReachesRuntime(t *testing.T) {
	runtime := fakecri.Start(t)
	seen := make(chan time.Duration, 1)
	runtime.Inject("Version", fakecri.Fault{Inspect: func(ctx context.Context) {
		deadline, _ := ctx.Deadline()
		seen <- time.Until(deadline)
	}})
	client, _ := startRecorder(t, runtime)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := client.Version(ctx, &runtimeapi.VersionRequest{}); err != nil {
		t.Fatal(err)
	}
	if left := <-seen; left > time.Minute || left < 30*time.Second {
		t.Errorf("deadline at the runtime is in %v, want about a minute", left)
	}
}

func TestStreamIsForwardedEventByEvent(t *testing.T) {
	runtime := fakecri.Start(t)
	client, out := startRecorder(t, runtime)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := client.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		config := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Uid: name}}
		if _, err := client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config}); err != nil {
			t.Fatal(err)
		}
		for seen := ""; seen != name; { // a sandbox has more events than one
			event, err := events.Recv()
			if err != nil {
				t.Fatal(err)
			}
			seen = event.GetPodSandboxStatus().GetMetadata().GetName()
		}
	}
	count := 0
	for _, line := range out.lines(t) {
		if line["method"] == "GetContainerEvents" {
			count++
		}
	}
	if count < 2 {
		t.Errorf("%d events recorded, want at least 2", count)
	}
}
