package runtime

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/test/fakecri"
)

// TestPostStartFlood: 15 MiB of output of a postStart hook, or of a runtime's error, make neither a long
// status message nor a long log record.
func TestPostStartFlood(t *testing.T) {
	flood := strings.Repeat("\x01\xff", 15<<19)
	for name, exec := range map[string]func(*runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error){
		"stderr": func(*runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
			return &runtimeapi.ExecSyncResponse{ExitCode: 1, Stderr: []byte(flood)}, nil
		},
		"error of the runtime": func(*runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
			return nil, status.Error(codes.Unknown, "exec failed: "+strings.Repeat("x", 1<<20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			fake := fakecri.Start(t)
			client, err := cri.Dial(cri.Config{RuntimeEndpoint: fake.Endpoint(), RequestTimeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			fake.OnExec(exec)
			var log bytes.Buffer
			b := newBench(t, func(_ *Config, d *Deps) {
				d.CRI, d.Log = client, slog.New(slog.NewTextHandler(&log, nil))
			})
			p := testPod(t, `{containers: [{name: c, lifecycle: {postStart: {exec: {command: [sh, x]}}}}]}`)
			config := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "ns", Uid: "u"}}
			sandbox, err := client.RunPodSandbox(t.Context(), config, "")
			if err != nil {
				t.Fatal(err)
			}
			id, err := client.CreateContainer(t.Context(), sandbox, &runtimeapi.ContainerConfig{
				Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: &runtimeapi.ImageSpec{Image: "i"},
			}, config)
			if err != nil {
				t.Fatal(err)
			}
			err = b.StartContainer(context.Background(), p, &p.Spec.Containers[0], id, 0, nil)
			var known *Error
			if !errors.As(err, &known) || !strings.HasPrefix(known.Message, `Exec lifecycle hook ([sh x]) for Container "c"`) {
				t.Fatalf("error %.200v", err)
			}
			t.Logf("message %d bytes, error %d, log %d", len(known.Message), len(err.Error()), log.Len())
			if len(known.Message) > 4096 || len(err.Error()) > 8192 || log.Len() > 32<<10 {
				t.Errorf("the status message has %d bytes, the error %d, the log %d", len(known.Message), len(err.Error()), log.Len())
			}
		})
	}
}

// A pod may answer all its hooks at the same time, with headers as long as the client accepts them.
func TestHookHeadersAreLimited(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 128<<10))
	}))
	defer server.Close()
	response, err := newHookClient().Get(server.URL)
	if err == nil {
		response.Body.Close()
		t.Error("accepted")
	}
}
