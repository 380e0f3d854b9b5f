package observe

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
	"swiftlet/test/realcri"
)

// realPod makes a pod on a real runtime whose container runs the script.
func realPod(t *testing.T, runtime *realcri.Runtime, client *cri.Client, uid, script string) (sandbox, container string) {
	t.Helper()
	ctx := context.Background()
	config := runtime.Pod(uid, uid)
	sandbox, err := client.RunPodSandbox(ctx, config, "")
	if err == nil {
		container, err = client.CreateContainer(ctx, sandbox, runtime.Container(config, "c", script), config)
	}
	if err == nil {
		err = client.StartContainer(ctx, container)
	}
	if err != nil {
		t.Fatal(err)
	}
	return sandbox, container
}

// TestRealRuntime relies on containerd's events: there are no relists except those after a
// subscription.
func TestRealRuntime(t *testing.T) {
	runtime := realcri.Start(t)
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: runtime.Endpoint(), RequestTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	sandbox, _ := realPod(t, runtime, client, "early", "sleep 1000")
	if err := client.RemovePodSandbox(t.Context(), sandbox); err != nil { // its events are buffered
		t.Fatal(err)
	}
	_, kept := realPod(t, runtime, client, "kept", "sleep 1000")

	o, err := New(Config{RelistPeriod: never, DownAfter: 100 * time.Millisecond, PollPeriod: 100 * time.Millisecond}, Deps{
		Runtime: client, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
		ReadMessage: func(pod.Ref, *pod.Container) string { return "last words" },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = o.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	changed := map[types.UID]int{}
	await := func(what string, is func() bool) {
		t.Helper()
		for late := time.After(20 * time.Second); !is(); {
			select {
			case uid := <-o.Changes():
				changed[uid]++
			case <-time.After(10 * time.Millisecond):
			case <-late:
				t.Fatalf("never: %s", what)
			}
		}
	}
	state := func(uid types.UID) pod.ContainerState {
		seen, _ := o.Get(uid)
		if c := seen.Latest("c"); c != nil {
			return c.State
		}
		return -1
	}

	<-o.Synced()
	await("the kept pod is running", func() bool { return state("kept") == pod.Running })
	sandbox, _ = realPod(t, runtime, client, "short", "sleep 0.2; exit 3")
	await("the short pod exited", func() bool { return state("short") == pod.Exited })
	short, _ := o.Get("short")
	if c := short.Latest("c"); c.ExitCode != 3 || c.Reason != "Error" || c.Message != "last words" || len(short.Sandbox().IPs) != 1 {
		t.Errorf("short: %+v", short)
	}
	if err := client.StopPodSandbox(ctx, sandbox); err != nil {
		t.Fatal(err)
	}
	await("its sandbox is down", func() bool { short, _ := o.Get("short"); return !short.Sandbox().Ready })
	if err := client.RemovePodSandbox(ctx, sandbox); err != nil {
		t.Fatal(err)
	}
	await("the short pod is gone", func() bool { _, ok := o.Get("short"); return !ok })
	if changed["early"] != 0 {
		t.Error("events from before the start were reported as changes")
	}

	runtime.Stop()
	await("unhealthy", func() bool { return o.Healthy() != nil })
	runtime.Restart()
	await("healthy", func() bool { return o.Healthy() == nil })
	if seen, _ := o.Get("kept"); seen.Latest("c") == nil || seen.Latest("c").ID != kept || state("kept") != pod.Running {
		t.Errorf("after the restart of the runtime: %+v", seen)
	}
	if err := client.StopContainer(ctx, kept, 0); err != nil {
		t.Fatal(err)
	}
	await("the kept pod exited", func() bool { return state("kept") == pod.Exited })
}
