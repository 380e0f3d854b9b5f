package cri_test

import (
	"context"
	"os"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
	"swiftlet/test/images"
	"swiftlet/test/realcri"
)

// TestRealRuntime takes a pod through its lifecycle on containerd, with every call it needs.
func TestRealRuntime(t *testing.T) {
	runtime := realcri.Start(t)
	c, err := cri.Dial(cri.Config{RuntimeEndpoint: runtime.Endpoint(), RequestTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	version, err := c.Version(ctx)
	ok(err)
	if version.RuntimeName != "containerd" {
		t.Errorf("version: %v", version)
	}
	status, err := c.Status(ctx, false)
	ok(err)
	for _, condition := range status.Status.Conditions[:2] {
		if !condition.Status {
			t.Errorf("condition: %v", condition)
		}
	}
	_, err = c.RuntimeConfig(ctx)
	ok(err)
	image, err := c.ImageStatus(ctx, &runtimeapi.ImageSpec{Image: images.Busybox}, false)
	ok(err)
	if image == nil {
		t.Fatal("the test image is missing")
	}
	if missing, err := c.ImageStatus(ctx, &runtimeapi.ImageSpec{Image: "none:1"}, false); err != nil || missing != nil {
		t.Errorf("missing image: %v, %v", missing, err)
	}
	_, err = c.ImageFsInfo(ctx)
	ok(err)

	config := runtime.Pod("p", "uid")
	sandbox, err := c.RunPodSandbox(ctx, config, "")
	ok(err)
	id, err := c.CreateContainer(ctx, sandbox, runtime.Container(config, "c", "echo out; sleep 1000"), config)
	ok(err)
	seen := read(t, c, sandbox, id)
	if seen.Latest("c").State != pod.Created || !seen.Latest("c").StartedAt.IsZero() {
		t.Errorf("created: %+v", seen.Latest("c"))
	}
	ok(c.StartContainer(ctx, id))
	seen = read(t, c, sandbox, id)
	running := seen.Latest("c")
	if running.State != pod.Running || running.Image != images.Busybox || running.Hash != "abc" || running.StartedAt.IsZero() ||
		running.User == nil || running.Resources.CPURequest.MilliValue() != 100 {
		t.Errorf("running: %+v", running)
	}
	if s := seen.Sandbox(); !s.Ready || len(s.IPs) != 1 || s.HostNetwork || seen.Name != "p" {
		t.Errorf("sandbox: %+v", s)
	}

	result, err := c.ExecSync(ctx, id, []string{"sh", "-c", "echo hello; exit 3"}, 10*time.Second)
	if err != nil || string(result.Stdout) != "hello\n" || result.ExitCode != 3 {
		t.Errorf("exec: %+v, %v", result, err)
	}
	if _, err := c.ExecSync(ctx, id, []string{"sleep", "100"}, time.Second); !cri.IsTimeout(err) {
		t.Errorf("exec with timeout: %v, want a timeout", err)
	}
	if url, err := c.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"true"}, Stdout: true}); err != nil || url == "" {
		t.Errorf("exec stream: %q, %v", url, err)
	}
	ok(c.UpdateContainerResources(ctx, id, &runtimeapi.LinuxContainerResources{CpuShares: 204}))
	ok(c.ReopenContainerLog(ctx, id))
	if _, err := os.Stat(running.LogPath); err != nil {
		t.Error(err)
	}

	ok(c.StopContainer(ctx, id, 0))
	seen = read(t, c, sandbox, id)
	if exited := seen.Latest("c"); exited.State != pod.Exited || exited.ExitCode != 137 || exited.Reason != "Error" || exited.FinishedAt.IsZero() {
		t.Errorf("stopped: %+v", exited)
	}
	for range 2 { // idempotent
		ok(c.StopContainer(ctx, id, 0))
		ok(c.RemoveContainer(ctx, id))
		ok(c.StopPodSandbox(ctx, sandbox))
		ok(c.RemovePodSandbox(ctx, sandbox))
	}
	if _, err := c.ContainerStatus(ctx, id, false); !cri.IsNotFound(err) {
		t.Errorf("status after removal: %v, want not found", err)
	}
	if _, err := c.PodSandboxStatus(ctx, sandbox, false); !cri.IsNotFound(err) {
		t.Errorf("status after removal: %v, want not found", err)
	}
}

func read(t *testing.T, c *cri.Client, sandbox, container string) pod.Observed {
	t.Helper()
	s, err := c.PodSandboxStatus(context.Background(), sandbox, false)
	if err != nil {
		t.Fatal(err)
	}
	one, err := c.ContainerStatus(context.Background(), container, false)
	if err != nil {
		t.Fatal(err)
	}
	return cri.ObservedFrom([]*runtimeapi.PodSandboxStatus{s.Status}, []*runtimeapi.ContainerStatus{one.Status}, time.Now())
}
