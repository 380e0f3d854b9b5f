package observe

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
	"swiftlet/test/fakecri"
	"swiftlet/test/poll"
)

// never is longer than any test.
const never = time.Hour

// observer is an Observer under test with the changes that it reported.
type observer struct {
	*Observer
	t       *testing.T
	changed chan types.UID
}

// start observes the runtime until the test ends, and waits for the first relist.
func start(t *testing.T, runtime *fakecri.Server, cfg Config, read func(pod.Ref, *pod.Container) string) *observer {
	t.Helper()
	o := newObserver(t, runtime, cfg, read)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- o.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	go func() {
		for {
			select {
			case uid := <-o.Changes():
				o.changed <- uid
			case <-ctx.Done():
				return
			}
		}
	}()
	select {
	case <-o.Synced():
	case <-time.After(5 * time.Second):
		t.Fatal("not synced")
	}
	return o
}

func newObserver(t *testing.T, runtime *fakecri.Server, cfg Config, read func(pod.Ref, *pod.Container) string) *observer {
	t.Helper()
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: runtime.Endpoint(), RequestTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	o, err := New(cfg, Deps{Runtime: client, ReadMessage: read, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return &observer{Observer: o, t: t, changed: make(chan types.UID, 1000)}
}

func (o *observer) state(uid types.UID, name string) string {
	seen, ok := o.Get(uid)
	if !ok {
		return "no pod"
	}
	c := seen.Latest(name)
	if c == nil {
		return "no container"
	}
	return c.State.String()
}

func (o *observer) await(uid types.UID, name, state string) {
	o.t.Helper()
	poll.Until(o.t, string(uid)+" "+name+" "+state, func() bool { return o.state(uid, name) == state })
}

// awaitRelists waits for n relists that start from now on.
func awaitRelists(t *testing.T, runtime *fakecri.Server, n int) {
	t.Helper()
	before := runtime.Count("ListPodSandbox")
	poll.Until(t, "relist", func() bool { return runtime.Count("ListPodSandbox") >= before+n+1 })
}

func TestFirstRelistFindsExistingPods(t *testing.T) {
	runtime := fakecri.Start(t)
	sandbox, ids := runtime.RunPod("ns", "a", "u", "c")
	o := start(t, runtime, Config{}, nil)
	seen, ok := o.Get("u")
	if !ok || seen.Sandbox().ID != sandbox || seen.Latest("c").ID != ids[0] || seen.Name != "a" || len(seen.Sandbox().IPs) != 1 {
		t.Errorf("seen: %+v", seen)
	}
	if got := o.List(); len(got) != 1 {
		t.Errorf("list: %v", got)
	}
	if err := o.Healthy(); err != nil {
		t.Error(err)
	}
}

func TestEventsCauseNoCalls(t *testing.T) {
	runtime := fakecri.Start(t)
	o := start(t, runtime, Config{RelistPeriod: never, PollPeriod: never}, nil)
	poll.Until(t, "subscribed and listed", func() bool { // once at the start, once for the subscription
		return runtime.Events.Subscribers() == 1 && runtime.Count("ListContainers") == 2
	})
	runtime.ResetCalls()
	_, ids := runtime.RunPod("ns", "a", "u", "c")
	o.await("u", "c", "running")
	runtime.Exit(ids[0], 3)
	o.await("u", "c", "exited")
	if uid := <-o.changed; uid != "u" {
		t.Errorf("changed: %s", uid)
	}
	if calls := runtime.Calls(); len(calls) != 0 {
		t.Errorf("calls: %v", calls)
	}
}

func TestUnchangedRelistMakesTwoCalls(t *testing.T) {
	runtime := fakecri.Start(t)
	for _, uid := range []string{"u", "v", "w"} {
		runtime.RunPod("ns", uid, uid, "c", "d")
	}
	start(t, runtime, Config{RelistPeriod: time.Millisecond, PollPeriod: time.Millisecond}, nil)
	runtime.ResetCalls()
	awaitRelists(t, runtime, 3)
	if n := runtime.Count("PodSandboxStatus") + runtime.Count("ContainerStatus"); n != 0 {
		t.Errorf("%d status calls though nothing changed", n)
	}
}

func TestRemovedPodIsReported(t *testing.T) {
	runtime := fakecri.Start(t)
	sandbox, _ := runtime.RunPod("ns", "a", "u", "c")
	o := start(t, runtime, Config{RelistPeriod: never, PollPeriod: never}, nil)
	<-o.changed
	_, _ = runtime.StopPodSandbox(context.Background(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox})
	_, _ = runtime.RemovePodSandbox(context.Background(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox})
	poll.Until(t, "gone", func() bool { _, ok := o.Get("u"); return !ok })
	if uid := <-o.changed; uid != "u" {
		t.Errorf("changed: %s", uid)
	}
}

func TestRemovedContainerLeavesTheOthers(t *testing.T) {
	runtime := fakecri.Start(t)
	_, ids := runtime.RunPod("ns", "a", "u", "c", "d")
	o := start(t, runtime, Config{RelistPeriod: never, PollPeriod: never}, nil)
	_, _ = runtime.RemoveContainer(context.Background(), &runtimeapi.RemoveContainerRequest{ContainerId: ids[0]})
	o.await("u", "c", "no container")
	o.await("u", "d", "running")
}

// A sandbox may be removed while a container is being created in it: the new container is found,
// and the removed ones are dropped.
func TestContainerCreatedAfterSandboxRemovalIsFound(t *testing.T) {
	runtime := fakecri.Start(t)
	sandbox, _ := runtime.RunPod("ns", "a", "u", "c")
	o := start(t, runtime, Config{RelistPeriod: never, PollPeriod: never}, nil)
	_, _ = runtime.StopPodSandbox(context.Background(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox})
	_, _ = runtime.RemovePodSandbox(context.Background(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox})
	runtime.AddOrphanContainer("ns", "a", "u", sandbox, "late")
	o.await("u", "late", "created")
	o.await("u", "c", "no container")
}

func TestRelistRecoversLostEvents(t *testing.T) {
	runtime := fakecri.Start(t)
	_, ids := runtime.RunPod("ns", "a", "u", "c", "d")
	o := start(t, runtime, Config{RelistPeriod: 20 * time.Millisecond, PollPeriod: 20 * time.Millisecond}, nil)
	runtime.Events.Drop(1000)
	runtime.Exit(ids[0], 1)
	_, _ = runtime.RemoveContainer(context.Background(), &runtimeapi.RemoveContainerRequest{ContainerId: ids[1]})
	runtime.RunPod("ns", "b", "v", "c")
	o.await("u", "c", "exited")
	o.await("u", "d", "no container")
	o.await("v", "c", "running")
}

func TestLateAndRepeatedEventsDoNotRevertState(t *testing.T) {
	runtime := fakecri.Start(t)
	o := start(t, runtime, Config{RelistPeriod: never, PollPeriod: never}, nil)
	runtime.Events.Repeat()
	runtime.Events.Hold()
	sandbox, ids := runtime.RunPod("ns", "a", "u", "c", "d")
	runtime.Exit(ids[0], 0)
	_, _ = runtime.RemoveContainer(context.Background(), &runtimeapi.RemoveContainerRequest{ContainerId: ids[1]})
	if _, err := o.Refresh(context.Background(), "u"); err != nil { // sees everything before the events arrive
		t.Fatal(err)
	}
	want := []string{"exited", "no container"}
	if got := []string{o.state("u", "c"), o.state("u", "d")}; !slices.Equal(got, want) {
		t.Fatalf("refreshed: %v", got)
	}
	runtime.Events.Release()
	last := runtime.RunContainer(sandbox, "e", 0) // its event is the last
	o.await("u", "e", "running")
	if got := []string{o.state("u", "c"), o.state("u", "d")}; !slices.Equal(got, want) {
		t.Errorf("after late events: %v (with %s)", got, last)
	}
}

// An event may be later than all that is remembered of a removed container.
func TestEventsFromBeforeTheLastReadAreDropped(t *testing.T) {
	runtime := fakecri.Start(t)
	o := newObserver(t, runtime, Config{}, nil)
	read := time.Now()
	ref := pod.Ref{Namespace: "ns", Name: "a", UID: "u"}
	o.store(observation{ref: ref, at: read, complete: true, sandboxes: []pod.Sandbox{sb("sb", true)}})
	exited := func(name string, created time.Time) *runtimeapi.ContainerEventResponse {
		labels := map[string]string{cri.LabelPodUID: "u", cri.LabelPodName: "a", cri.LabelPodNamespace: "ns", cri.LabelContainerName: name}
		return &runtimeapi.ContainerEventResponse{
			ContainerEventType: runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT,
			CreatedAt:          created.UnixNano(),
			PodSandboxStatus:   &runtimeapi.PodSandboxStatus{Id: "sb", Labels: labels},
			ContainersStatuses: []*runtimeapi.ContainerStatus{{
				Id: name, Labels: labels, Metadata: &runtimeapi.ContainerMetadata{Name: name},
				State: runtimeapi.ContainerState_CONTAINER_EXITED,
			}},
		}
	}
	o.handle(t.Context(), exited("removed", read.Add(-time.Second)))
	if got := o.state("u", "removed"); got != "no container" {
		t.Errorf("container of an event from before the read: %s", got)
	}
	o.handle(t.Context(), exited("new", time.Now()))
	if got := o.state("u", "new"); got != "exited" {
		t.Errorf("container of an event from after the read: %s", got)
	}
}

func TestEventsFromBeforeTheStartAreDropped(t *testing.T) {
	runtime := fakecri.Start(t)
	for range 20 { // buffered: there is no subscriber
		sandbox, _ := runtime.RunPod("ns", "old", "old", "c")
		_, _ = runtime.RemovePodSandbox(context.Background(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox})
	}
	o := start(t, runtime, Config{RelistPeriod: never, PollPeriod: never}, nil)
	runtime.RunPod("ns", "new", "new", "c")
	if uid := <-o.changed; uid != "new" {
		t.Errorf("a pod that was gone before the start changed: %s", uid)
	}
	if _, ok := o.Get("old"); ok {
		t.Error("a pod that was gone before the start is observed")
	}
}

func TestBrokenStreamIsResumed(t *testing.T) {
	runtime := fakecri.Start(t)
	_, ids := runtime.RunPod("ns", "a", "u", "c", "d")
	o := start(t, runtime, Config{RelistPeriod: never, PollPeriod: never}, nil)
	poll.Until(t, "subscribed", func() bool { return runtime.Events.Subscribers() == 1 })
	runtime.Events.Drop(1) // lost in the break: only the relist after it finds the exit
	runtime.Exit(ids[0], 0)
	runtime.Events.Break()
	o.await("u", "c", "exited")
	poll.Until(t, "subscribed again", func() bool { return runtime.Events.Subscribers() == 1 })
	runtime.Exit(ids[1], 0)
	o.await("u", "d", "exited")
}

func TestRuntimeWithoutEventsIsPolled(t *testing.T) {
	runtime := fakecri.Start(t, fakecri.WithoutEvents())
	o := start(t, runtime, Config{RelistPeriod: never, PollPeriod: 5 * time.Millisecond}, nil)
	_, ids := runtime.RunPod("ns", "a", "u", "c")
	o.await("u", "c", "running")
	runtime.Exit(ids[0], 0)
	o.await("u", "c", "exited")
}

func TestHungPodDoesNotAffectOthers(t *testing.T) {
	runtime := fakecri.Start(t)
	_, bad := runtime.RunPod("ns", "bad", "bad", "c")
	runtime.RunPod("ns", "good", "good", "c")
	runtime.Inject("ContainerStatus", fakecri.Fault{Hang: true, Match: func(request any) bool {
		return request.(*runtimeapi.ContainerStatusRequest).ContainerId == bad[0]
	}})
	o := start(t, runtime, Config{RelistPeriod: 10 * time.Millisecond, PollPeriod: 10 * time.Millisecond, FirstRelistTimeout: 50 * time.Millisecond}, nil)
	o.await("good", "c", "running")
	if err := o.Healthy(); err != nil {
		t.Errorf("node is unhealthy: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := o.Refresh(ctx, "bad"); err == nil {
		t.Error("the hung pod was read")
	}
}

func TestFailedReadIsRetried(t *testing.T) {
	runtime := fakecri.Start(t)
	runtime.Inject("PodSandboxStatus", fakecri.Fault{Err: status.Error(codes.Internal, "not now"), Times: 1})
	runtime.RunPod("ns", "a", "u", "c")
	o := start(t, runtime, Config{RelistPeriod: never, PollPeriod: 10 * time.Millisecond}, nil)
	o.await("u", "c", "running")
}

func TestRuntimeOutage(t *testing.T) {
	runtime := fakecri.Start(t)
	_, ids := runtime.RunPod("ns", "a", "u", "c")
	o := start(t, runtime, Config{PollPeriod: 10 * time.Millisecond, DownAfter: 30 * time.Millisecond}, nil)
	<-o.changed
	runtime.Stop()
	poll.Until(t, "unhealthy", func() bool { return o.Healthy() != nil })
	if err := o.Healthy(); !strings.HasPrefix(err.Error(), "container runtime is down: ") {
		t.Error(err)
	}
	if o.state("u", "c") != "running" {
		t.Error("pods were dropped during the outage")
	}
	if err := runtime.Restart(); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "healthy again", func() bool { return o.Healthy() == nil })
	poll.Until(t, "subscribed again", func() bool { return runtime.Events.Subscribers() == 1 })
	runtime.Exit(ids[0], 0)
	o.await("u", "c", "exited")
	if n := len(o.changed); n > 1 {
		t.Errorf("%d changes for one exit", n)
	}
}

func TestMessagesAreReadOncePerContainer(t *testing.T) {
	runtime := fakecri.Start(t)
	_, ids := runtime.RunPod("ns", "a", "u", "c", "d")
	var reads atomic.Int32
	o := start(t, runtime, Config{RelistPeriod: 5 * time.Millisecond, PollPeriod: 5 * time.Millisecond}, func(ref pod.Ref, c *pod.Container) string {
		reads.Add(1)
		return ref.Name + "/" + c.Name + " ended"
	})
	runtime.Exit(ids[0], 1)
	o.await("u", "c", "exited")
	for range 3 {
		seen, err := o.Refresh(context.Background(), "u")
		if err != nil {
			t.Fatal(err)
		}
		if got := seen.Latest("c").Message; got != "a/c ended" {
			t.Errorf("message %q", got)
		}
	}
	awaitRelists(t, runtime, 2)
	if n := reads.Load(); n != 1 {
		t.Errorf("read %d times", n)
	}
}

func TestRefresh(t *testing.T) {
	runtime := fakecri.Start(t)
	o := newObserver(t, runtime, Config{}, nil) // not running: only Refresh reads
	ctx := context.Background()
	if seen, err := o.Refresh(ctx, "u"); err != nil || len(seen.Sandboxes) != 0 || seen.UID != "u" || seen.At.IsZero() {
		t.Errorf("no such pod: %+v, %v", seen, err)
	}
	sandbox, _ := runtime.RunPod("ns", "a", "u", "c")
	runtime.RunPod("ns", "b", "v", "c")
	began := time.Now()
	seen, err := o.Refresh(ctx, "u")
	if err != nil || seen.Sandbox().ID != sandbox || len(seen.Containers) != 1 || seen.At.Before(began) {
		t.Errorf("a pod: %+v, %v", seen, err)
	}
	if _, ok := o.Get("v"); ok {
		t.Error("Refresh has read another pod")
	}
	runtime.Inject("ListContainers", fakecri.Fault{Err: status.Error(codes.Internal, "broken")})
	if _, err := o.Refresh(ctx, "u"); err == nil || !strings.HasPrefix(err.Error(), "refresh pod u: list containers: ") {
		t.Errorf("error: %v", err)
	}
}
