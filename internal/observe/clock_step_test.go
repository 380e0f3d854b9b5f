package observe

import (
	"context"
	"log/slog"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/test/fakecri"
	"swiftlet/test/stepclock"
)

// startStepped observes a runtime whose clock, as the observer's, a test can set.
func startStepped(t *testing.T) (*observer, *fakecri.Server, *stepclock.Clock) {
	t.Helper()
	clock := &stepclock.Clock{}
	runtime := fakecri.Start(t, fakecri.WithNow(clock.Wall))
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: runtime.Endpoint(), RequestTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	o, err := New(Config{RelistPeriod: never, PollPeriod: 50 * time.Millisecond}, Deps{Runtime: client, Clock: clock, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- o.Run(ctx) }()
	go func() {
		for {
			select {
			case <-o.Changes():
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	<-o.Synced()
	return &observer{Observer: o, t: t}, runtime, clock
}

// Events are neither stale nor newer than what follows after the wall clock was set.
func TestEventsAfterClockStep(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			o, runtime, clock := startStepped(t)
			_, ids := runtime.RunPod("ns", "a", "u", "c", "d")
			o.await("u", "c", "running")
			if _, err := o.Refresh(t.Context(), "u"); err != nil { // events from before are stale from here on
				t.Fatal(err)
			}
			clock.Step(step)
			runtime.Exit(ids[0], 1)
			o.await("u", "c", "exited")
			clock.Step(-step)
			runtime.Exit(ids[1], 1)
			o.await("u", "d", "exited")
			if err := o.Healthy(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A runtime whose times are in the future does not keep the observer from seeing later changes.
func TestEventFromFuture(t *testing.T) {
	o, runtime, clock := startStepped(t)
	sandbox, ids := runtime.RunPod("ns", "a", "u", "c")
	o.await("u", "c", "running")
	status := runtime.Sandboxes()[0]
	runtime.Events.Emit(&runtimeapi.ContainerEventResponse{
		ContainerId: sandbox, CreatedAt: clock.Wall().Add(time.Hour).UnixNano(), PodSandboxStatus: status, ContainersStatuses: runtime.Containers(),
	})
	seen, err := o.Refresh(t.Context(), "u")
	if err != nil {
		t.Fatal(err)
	}
	if seen.At.After(clock.Now()) {
		t.Errorf("observed at %v, which is in the future", seen.At)
	}
	runtime.Exit(ids[0], 1)
	o.await("u", "c", "exited")
}
