package cri

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/fakecri"
)

func dial(t *testing.T, runtime *fakecri.Server, timeout time.Duration) *Client {
	t.Helper()
	c, err := Dial(Config{RuntimeEndpoint: runtime.Endpoint(), RequestTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestDialRejectsInvalidConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no endpoint":            {RequestTimeout: time.Second},
		"tcp":                    {RuntimeEndpoint: "tcp://127.0.0.1:1", RequestTimeout: time.Second},
		"relative path":          {RuntimeEndpoint: "unix://run/x.sock", RequestTimeout: time.Second},
		"no timeout":             {RuntimeEndpoint: "/run/x.sock"},
		"invalid image endpoint": {RuntimeEndpoint: "/run/x.sock", ImageEndpoint: "x", RequestTimeout: time.Second},
	} {
		if _, err := Dial(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestStopAndRemoveAreIdempotent(t *testing.T) {
	runtime := fakecri.Start(t)
	c := dial(t, runtime, time.Second)
	ctx := context.Background()
	for _, method := range []string{"StopPodSandbox", "RemovePodSandbox", "RemoveImage"} { // the fake returns no error here
		runtime.Inject(method, fakecri.Fault{Err: status.Error(codes.NotFound, "gone")})
	}
	for name, err := range map[string]error{
		"stop sandbox":     c.StopPodSandbox(ctx, "x"),
		"remove sandbox":   c.RemovePodSandbox(ctx, "x"),
		"stop container":   c.StopContainer(ctx, "x", 0),
		"remove container": c.RemoveContainer(ctx, "x"),
		"remove image":     c.RemoveImage(ctx, &runtimeapi.ImageSpec{Image: "x"}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.StartContainer(ctx, "x"); !IsNotFound(err) {
		t.Errorf("start of a missing container: %v, want not found", err)
	}
}

func TestErrorsNameTheOperationAndKeepTheRuntimeError(t *testing.T) {
	runtime := fakecri.Start(t)
	c := dial(t, runtime, time.Second)
	runtime.Inject("StartContainer", fakecri.Fault{Err: status.Error(codes.Unknown, "no such file")})
	err := c.StartContainer(context.Background(), "abc")
	for what, pair := range map[string][2]string{
		"error":       {err.Error(), "start container abc: rpc error: code = Unknown desc = no such file"},
		"text":        {Text(err), "rpc error: code = Unknown desc = no such file"},
		"description": {Description(err), "no such file"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
		}
	}
}

// The runtime sees the deadline of each call.
func TestDeadlines(t *testing.T) {
	const base = 10 * time.Second
	runtime := fakecri.Start(t)
	c := dial(t, runtime, base)
	ctx := context.Background()
	for _, test := range []struct {
		method string
		want   time.Duration
		call   func(ctx context.Context)
	}{
		{"Version", base, func(ctx context.Context) { _, _ = c.Version(ctx) }},
		{"RunPodSandbox", 2 * base, func(ctx context.Context) { _, _ = c.RunPodSandbox(ctx, &runtimeapi.PodSandboxConfig{}, "") }},
		{"StopContainer", base + 30*time.Second, func(ctx context.Context) { _ = c.StopContainer(ctx, "x", 30*time.Second) }},
		{"ExecSync", execMargin + time.Second, func(ctx context.Context) { _, _ = c.ExecSync(ctx, "x", nil, time.Second) }},
		{"PullImage", 0, func(ctx context.Context) { _, _ = c.PullImage(ctx, &runtimeapi.ImageSpec{}, nil, nil) }},
	} {
		var left time.Duration
		runtime.Inject(test.method, fakecri.Fault{Inspect: func(ctx context.Context) {
			if deadline, ok := ctx.Deadline(); ok {
				left = time.Until(deadline)
			}
		}})
		test.call(ctx)
		if left > test.want || left < test.want-5*time.Second {
			t.Errorf("%s: %v left, want about %v", test.method, left, test.want)
		}
	}
}

func TestHungCallTimesOutAndDoesNotBlockOthers(t *testing.T) {
	runtime := fakecri.Start(t)
	c := dial(t, runtime, 100*time.Millisecond)
	runtime.Inject("StartContainer", fakecri.Fault{Hang: true})
	hung := make(chan error)
	go func() { hung <- c.StartContainer(context.Background(), "x") }()
	if _, err := c.Version(context.Background()); err != nil {
		t.Errorf("version during a hung call: %v", err)
	}
	if err := <-hung; !IsTimeout(err) {
		t.Errorf("hung call: %v, want a timeout", err)
	}
}

// A command that hangs alone has exceeded its timeout, as that of an unhealthy container may. If the whole
// runtime hangs, that says nothing about the container, which a failed probe would restart.
func TestHungExec(t *testing.T) {
	for name, hangs := range map[string][]string{"command": {"ExecSync"}, "runtime": {"ExecSync", "Version"}} {
		t.Run(name, func(t *testing.T) {
			runtime := fakecri.Start(t)
			c := dial(t, runtime, time.Minute)
			c.margin = 50 * time.Millisecond
			for _, method := range hangs {
				runtime.Inject(method, fakecri.Fault{Hang: true})
			}
			_, err := c.ExecSync(t.Context(), "x", nil, 50*time.Millisecond)
			if err == nil || IsTimeout(err) != (name == "command") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestReconnectAfterRuntimeRestart(t *testing.T) {
	runtime := fakecri.Start(t)
	c := dial(t, runtime, time.Second)
	ctx := context.Background()
	if _, err := c.Version(ctx); err != nil {
		t.Fatal(err)
	}
	runtime.Stop()
	if _, err := c.Version(ctx); !IsUnavailable(err) {
		t.Fatalf("call without a runtime: %v, want unavailable", err)
	}
	if err := runtime.Restart(); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	for {
		_, err := c.Version(ctx)
		if err == nil {
			break
		}
		if time.Since(back) > 2*time.Second {
			t.Fatalf("no connection two seconds after the restart: %v", err)
		}
		time.Sleep(10 * time.Millisecond) // polling, not waiting to be right
	}
}

func TestRuntimeWithoutV1IsRejected(t *testing.T) {
	runtime := fakecri.Start(t)
	c := dial(t, runtime, time.Second)
	runtime.Inject("Version", fakecri.Fault{Err: status.Error(codes.Unimplemented, "unknown service runtime.v1.RuntimeService")})
	if _, err := c.Version(context.Background()); !IsUnimplemented(err) || !strings.HasPrefix(err.Error(), "get runtime version: ") {
		t.Errorf("a runtime without CRI v1: %v", err)
	}
}

// Runtimes report an unimplemented UpdatePodSandboxResources in two ways; other errors count.
func TestUnimplementedSandboxResourcesAreIgnored(t *testing.T) {
	runtime := fakecri.Start(t)
	c := dial(t, runtime, time.Second)
	for said, fails := range map[error]bool{
		status.Error(codes.Unimplemented, "unknown method"):    false,
		status.Error(codes.Unknown, "not implemented yet"):     false,
		status.Error(codes.Unknown, "no such file"):            true,
		status.Error(codes.Internal, "not implemented at all"): true,
	} {
		runtime.Inject("UpdatePodSandboxResources", fakecri.Fault{Err: said})
		if err := c.UpdatePodSandboxResources(t.Context(), "id", nil, nil); (err != nil) != fails {
			t.Errorf("%v: got %v", said, err)
		}
	}
}

func TestEventsReturnsErrorOfBrokenStream(t *testing.T) {
	runtime := fakecri.Start(t)
	c := dial(t, runtime, time.Second)
	got := make(chan *runtimeapi.ContainerEventResponse, 10)
	ended := make(chan error)
	go func() {
		ended <- c.Events(context.Background(), func(e *runtimeapi.ContainerEventResponse) { got <- e })
	}()
	id, _ := runtime.RunPod("ns", "a", "uid-a")
	if e := <-got; e.ContainerId != id || e.PodSandboxStatus.GetId() != id {
		t.Errorf("first event: %v", e)
	}
	runtime.Events.Break()
	if err := <-ended; err == nil {
		t.Error("a broken stream ended without an error")
	}
}

func TestRuntimeWithoutEvents(t *testing.T) {
	c := dial(t, fakecri.Start(t, fakecri.WithoutEvents()), time.Second)
	err := c.Events(context.Background(), func(*runtimeapi.ContainerEventResponse) {})
	if !IsUnimplemented(err) {
		t.Errorf("%v, want unimplemented", err)
	}
}
