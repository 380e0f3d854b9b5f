package crifaults

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/fakecri"
	"swiftlet/test/poll"
)

// startProxy starts a proxy of the fake runtime and connects to it.
func startProxy(t *testing.T) (*Proxy, runtimeapi.RuntimeServiceClient) {
	t.Helper()
	dir, err := os.MkdirTemp("", "crifaults") // not t.TempDir: a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "cri.sock")
	p, err := Start(socket, strings.TrimPrefix(fakecri.Start(t).Endpoint(), "unix://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return p, runtimeapi.NewRuntimeServiceClient(connection)
}

func runSandbox(ctx context.Context, client runtimeapi.RuntimeServiceClient, name string) (string, error) {
	config := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Uid: name}}
	made, err := client.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
	return made.GetPodSandboxId(), err
}

func TestHangingPod(t *testing.T) {
	p, client := startProxy(t)
	fault, hangs := HangingPod("one", "StopPodSandbox")
	p.Set(fault)
	ids := map[string]string{}
	for _, name := range []string{"one", "two"} {
		id, err := runSandbox(t.Context(), client, name)
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = id
	}
	if _, err := client.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: ids["two"]}); err != nil || hangs() {
		t.Errorf("the other pod: %v, hangs: %t", err, hangs())
	}
	stopped := make(chan error, 1)
	go func() {
		_, err := client.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: ids["one"]})
		stopped <- err
	}()
	poll.Until(t, "hanging call", hangs)
	select {
	case err := <-stopped:
		t.Errorf("the call returned: %v", err)
	default:
	}
	p.Set(Fault{})
	if err := <-stopped; status.Code(err) != codes.Unavailable {
		t.Errorf("at the end of the fault: %v", err)
	}
	if got := p.Calls(); got["RunPodSandbox"] != 2 || got["StopPodSandbox"] != 2 {
		t.Errorf("calls %v", got)
	}
}

func TestLosingAnswersExecutesTheCall(t *testing.T) {
	p, client := startProxy(t)
	p.Set(LosingAnswers(1))
	if _, err := runSandbox(t.Context(), client, "a"); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
	p.Set(Fault{})
	list, err := client.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("%d sandboxes, %v", len(list.GetItems()), err)
	}
}

func TestLies(t *testing.T) {
	p, client := startProxy(t)
	id, err := runSandbox(t.Context(), client, "a")
	if err != nil {
		t.Fatal(err)
	}
	honest, err := client.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id})
	if err != nil {
		t.Fatal(err)
	}
	list := func() (int, error) {
		got, err := client.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
		return len(got.GetItems()), err
	}
	for name, c := range map[string]struct {
		fault Fault
		want  int
		code  codes.Code
	}{
		"repeated":  {Duplicating(), 2, codes.OK},
		"omitted":   {OmittingFields(), 3, codes.OK},
		"too large": {GrowingLists(20 << 20), 0, codes.ResourceExhausted},
		"cut":       {Truncating(1), 0, codes.Internal},
		"failed":    {Failing(1, codes.Unknown), 0, codes.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			p.Set(c.fault)
			if got, err := list(); got != c.want || status.Code(err) != c.code {
				t.Errorf("%d entries, %v; want %d, %v", got, err, c.want, c.code)
			}
		})
	}
	p.Set(ShiftingTimes(time.Hour))
	shifted, err := client.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id})
	if err != nil || time.Duration(shifted.Status.CreatedAt-honest.Status.CreatedAt) != time.Hour {
		t.Errorf("created at %d, %v; honest is %d", shifted.GetStatus().GetCreatedAt(), err, honest.Status.CreatedAt)
	}
}

func TestReplayingEvents(t *testing.T) {
	p, client := startProxy(t)
	p.Set(ReplayingEvents())
	events, err := client.GetContainerEvents(t.Context(), &runtimeapi.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runSandbox(t.Context(), client, "a"); err != nil {
		t.Fatal(err)
	}
	var first *runtimeapi.ContainerEventResponse
	for range 2 {
		event, err := events.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = event
		} else if event.CreatedAt != first.CreatedAt || event.ContainerEventType != first.ContainerEventType {
			t.Errorf("got %v, then %v", first, event)
		}
	}
}
