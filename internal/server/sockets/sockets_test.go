package sockets

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	resourcesv1alpha1 "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"
)

// fakeNode is a node with pods that a test changes.
type fakeNode struct {
	mu       sync.Mutex
	ready    bool
	pods     []*v1.Pod
	terminal map[types.UID]bool
	statuses map[types.UID]v1.PodStatus
	notify   func()
	calls    []string
}

func (w *fakeNode) Ready() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready
}

func (w *fakeNode) List() []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*v1.Pod{}, w.pods...)
}

func (w *fakeNode) Active() (active []*v1.Pod) {
	for _, p := range w.List() {
		if !w.terminal[p.UID] {
			active = append(active, p)
		}
	}
	return active
}

func (w *fakeNode) find(is func(*v1.Pod) bool) (*v1.Pod, bool) {
	for _, p := range w.List() {
		if is(p) {
			return p, true
		}
	}
	return nil, false
}

func (w *fakeNode) ByName(namespace, name string) (*v1.Pod, bool) {
	return w.find(func(p *v1.Pod) bool { return p.Namespace == namespace && p.Name == name })
}

func (w *fakeNode) Get(uid types.UID) (*v1.Pod, bool) {
	return w.find(func(p *v1.Pod) bool { return p.UID == uid })
}

// statuses implements Statuses, whose Get differs from that of Pods.
type statuses struct{ *fakeNode }

func (s statuses) Get(uid types.UID) (v1.PodStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.statuses[uid]
	return known, ok
}

func (s statuses) Subscribe(f func()) { s.notify = f }

func (w *fakeNode) change(f func()) {
	w.mu.Lock()
	f()
	w.mu.Unlock()
	w.notify()
}

// providers reports resources of every kind for every container.
type providers struct{}

func (providers) Devices(_ types.UID, c string) []*resourcesv1.ContainerDevices {
	return []*resourcesv1.ContainerDevices{{ResourceName: "example.com/gpu", DeviceIds: []string{c + "-0"}}}
}
func (providers) AllocatableDevices() []*resourcesv1.ContainerDevices {
	return []*resourcesv1.ContainerDevices{{ResourceName: "example.com/gpu", DeviceIds: []string{"0", "1"}}}
}
func (providers) CPUs(*v1.Pod, *v1.Container) []int64 { return []int64{2, 3} }
func (providers) PodCPUs(types.UID) []int64           { return []int64{1, 2, 3} }
func (providers) AllocatableCPUs() []int64            { return []int64{1, 2, 3, 4} }
func (providers) Memory(*v1.Pod, *v1.Container) []*resourcesv1.ContainerMemory {
	return []*resourcesv1.ContainerMemory{{MemoryType: "memory", Size: 7}}
}
func (providers) PodMemory(types.UID) []*resourcesv1.ContainerMemory {
	return []*resourcesv1.ContainerMemory{{MemoryType: "memory", Size: 8}}
}
func (providers) AllocatableMemory() []*resourcesv1.ContainerMemory {
	return []*resourcesv1.ContainerMemory{{MemoryType: "memory", Size: 9}}
}
func (providers) DynamicResources(*v1.Pod, *v1.Container) []*resourcesv1.DynamicResource {
	return []*resourcesv1.DynamicResource{{ClaimName: "claim"}}
}

func newFakeNode(t *testing.T) *fakeNode {
	t.Helper()
	w := &fakeNode{ready: true, terminal: map[types.UID]bool{"uid-2": true}, statuses: map[types.UID]v1.PodStatus{"uid-1": {Phase: v1.PodRunning}}}
	for _, text := range []string{`
metadata: {namespace: ns, name: done, uid: uid-2}
spec: {containers: [{name: main}]}
status: {conditions: [{type: Ready, status: "True"}, {type: Initialized, status: "True"}]}`, `
metadata: {namespace: ns, name: web, uid: uid-1}
spec:
  initContainers: [{name: init}, {name: sidecar, restartPolicy: Always}]
  containers: [{name: main}]
  ephemeralContainers: [{name: debug}]`} {
		p := &v1.Pod{}
		if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
			t.Fatal(err)
		}
		w.pods = append(w.pods, p)
	}
	return w
}

// start serves the node and returns connections to both sockets. The clock stands still.
func (w *fakeNode) start(t *testing.T, edit func(*Config, *Deps)) (resources, pods *grpc.ClientConn) {
	t.Helper()
	cfg := Config{RootDir: t.TempDir(), ActivePods: true, PodsAPI: true}
	deps := Deps{Pods: w, Statuses: statuses{w}, Clock: testclock.NewFakeClock(time.Now()), Log: slog.New(slog.DiscardHandler),
		Called: func(method string, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.calls = append(w.calls, fmt.Sprint(method, " ", status.Code(err)))
		}}
	if edit != nil {
		edit(&cfg, &deps)
	}
	s, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return dial(t, cfg.RootDir+"/pod-resources/kubelet.sock"), dial(t, cfg.RootDir+"/pods-api/pods-api.sock")
}

func dial(t *testing.T, path string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// withDeadline returns a context for calls, so that a failing test does not hang.
func withDeadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestPodResources(t *testing.T) {
	conn, _ := newFakeNode(t).start(t, nil)
	client, ctx := resourcesv1.NewPodResourcesListerClient(conn), withDeadline(t)
	list, err := client.List(ctx, &resourcesv1.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(list.PodResources), `[name:"web" namespace:"ns" containers:{name:"sidecar"} containers:{name:"main"}]`; singleSpaced(got) != want {
		t.Errorf("list = %s, want %s", got, want)
	}
	one, err := client.Get(ctx, &resourcesv1.GetPodResourcesRequest{PodNamespace: "ns", PodName: "done"})
	if got, want := fmt.Sprint(one.GetPodResources(), err), `name:"done" namespace:"ns" containers:{name:"main"} <nil>`; singleSpaced(got) != want {
		t.Errorf("get = %s, want %s", got, want)
	}
	_, err = client.Get(ctx, &resourcesv1.GetPodResourcesRequest{PodNamespace: "ns", PodName: "none"})
	if status.Code(err) != codes.Unknown || status.Convert(err).Message() != "pod none in namespace ns not found" {
		t.Errorf("get of none: %v", err)
	}
	if all, err := client.GetAllocatableResources(ctx, &resourcesv1.AllocatableResourcesRequest{}); err != nil || fmt.Sprint(all) != "" {
		t.Errorf("allocatable = %v, %v", all, err)
	}
	old, err := resourcesv1alpha1.NewPodResourcesListerClient(conn).List(ctx, &resourcesv1alpha1.ListPodResourcesRequest{})
	if got, want := fmt.Sprint(old.GetPodResources(), err), `[name:"done" namespace:"ns" containers:{name:"main"} name:"web" namespace:"ns" containers:{name:"main"}] <nil>`; singleSpaced(got) != want {
		t.Errorf("v1alpha1 = %s, want %s", got, want)
	}
}

// singleSpaced removes the double spaces that protobuf inserts at random to make its text format
// unstable.
func singleSpaced(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestPodResourcesWithProviders(t *testing.T) {
	conn, _ := newFakeNode(t).start(t, func(c *Config, d *Deps) {
		c.PodLevel, c.ActivePods = true, false
		d.Devices, d.CPUs, d.Memory, d.Claims = providers{}, providers{}, providers{}, providers{}
	})
	client, ctx := resourcesv1.NewPodResourcesListerClient(conn), withDeadline(t)
	list, err := client.List(ctx, &resourcesv1.ListPodResourcesRequest{})
	if err != nil || len(list.PodResources) != 2 {
		t.Fatalf("list = %v, %v, want both pods", list, err)
	}
	const want = `name:"done" namespace:"ns" containers:{name:"main" devices:{resource_name:"example.com/gpu" device_ids:"main-0"} cpu_ids:2 cpu_ids:3 ` +
		`memory:{memory_type:"memory" size:7} dynamic_resources:{claim_name:"claim"}} cpu_ids:1 cpu_ids:2 cpu_ids:3 memory:{memory_type:"memory" size:8}`
	if got := singleSpaced(fmt.Sprint(list.PodResources[0])); got != want {
		t.Errorf("list = %s, want %s", got, want)
	}
	all, err := client.GetAllocatableResources(ctx, &resourcesv1.AllocatableResourcesRequest{})
	if got, want := singleSpaced(fmt.Sprint(all, err)), `devices:{resource_name:"example.com/gpu" device_ids:"0" device_ids:"1"} cpu_ids:1 cpu_ids:2 cpu_ids:3 cpu_ids:4 memory:{memory_type:"memory" size:9} <nil>`; got != want {
		t.Errorf("allocatable = %s, want %s", got, want)
	}
	old, err := resourcesv1alpha1.NewPodResourcesListerClient(conn).List(ctx, &resourcesv1alpha1.ListPodResourcesRequest{})
	if err != nil || len(old.PodResources) != 2 || singleSpaced(fmt.Sprint(old.PodResources[0].Containers[0].Devices)) != `[resource_name:"example.com/gpu" device_ids:"main-0"]` {
		t.Errorf("v1alpha1 = %v, %v", old, err)
	}
}

func TestRateLimit(t *testing.T) {
	w := newFakeNode(t)
	conn, _ := w.start(t, nil)
	client, ctx := resourcesv1.NewPodResourcesListerClient(conn), withDeadline(t)
	refused := 0
	for range callBurst + 5 { // the clock stands still, so the limiter does not refill
		if _, err := client.List(ctx, &resourcesv1.ListPodResourcesRequest{}); status.Code(err) == codes.ResourceExhausted {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if refused != 5 {
		t.Errorf("%d of %d calls were refused, want 5", refused, callBurst+5)
	}
	if len(w.calls) != callBurst || w.calls[0] != "/v1.PodResourcesLister/List OK" {
		t.Errorf("calls counted: %v", w.calls)
	}
}

func decode(t *testing.T, text []byte) *v1.Pod {
	t.Helper()
	p := &v1.Pod{}
	if err := p.Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPodsAPI(t *testing.T) {
	w := newFakeNode(t)
	w.ready = false
	_, conn := w.start(t, nil)
	client, ctx := podsv1alpha1.NewPodsClient(conn), withDeadline(t)
	if _, err := client.ListPods(ctx, &podsv1alpha1.ListPodsRequest{}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("list before the sources have reported: %v", err)
	}
	w.change(func() { w.ready = true })
	list, err := client.ListPods(ctx, &podsv1alpha1.ListPodsRequest{})
	if err != nil || len(list.Pods) != 2 {
		t.Fatalf("list = %v, %v, want both pods", list, err)
	}
	if p := decode(t, list.Pods[0]); p.Name != "web" || p.Status.Phase != v1.PodRunning {
		t.Errorf("first is %s, %s, want web, Running", p.Name, p.Status.Phase)
	}
	one, err := client.GetPod(ctx, &podsv1alpha1.GetPodRequest{PodUID: "uid-2"})
	if err != nil {
		t.Fatal(err)
	}
	p := decode(t, one.Pod)
	if c := p.Status.Conditions; p.Status.Phase != v1.PodPending || c[0].Status != v1.ConditionFalse || c[0].Reason != "ContainersNotReady" || c[1].Status != v1.ConditionTrue {
		t.Errorf("status of a pod without derived status: %+v", p.Status)
	}
	if w.pods[0].Status.Conditions[0].Status != v1.ConditionTrue {
		t.Error("the pod itself was changed")
	}
	if _, err := client.GetPod(ctx, &podsv1alpha1.GetPodRequest{PodUID: "none"}); status.Code(err) != codes.NotFound || status.Convert(err).Message() != "pod with UID none not found" {
		t.Errorf("get of none: %v", err)
	}
}

func TestWatchPods(t *testing.T) {
	w := newFakeNode(t)
	_, conn := w.start(t, nil)
	stream, err := podsv1alpha1.NewPodsClient(conn).WatchPods(withDeadline(t), &podsv1alpha1.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	next := func(want string) {
		t.Helper()
		event, err := stream.Recv()
		if err != nil {
			t.Fatalf("%v, want %s", err, want)
		}
		got := event.Type.String()
		if len(event.Pod) > 0 {
			p := decode(t, event.Pod)
			got += fmt.Sprintf(" %s/%s %s %s %d", p.Namespace, p.Name, p.UID, p.Status.Phase, len(p.Spec.Containers))
		}
		if got != want {
			t.Fatalf("event %q, want %q", got, want)
		}
	}
	next("ADDED ns/web uid-1 Running 1")
	next("ADDED ns/done uid-2 Pending 1")
	next("INITIAL_SYNC_COMPLETE")
	w.change(func() {}) // no event for an unchanged pod
	w.change(func() { w.statuses["uid-1"] = v1.PodStatus{Phase: v1.PodSucceeded} })
	next("MODIFIED ns/web uid-1 Succeeded 1")
	w.change(func() { w.pods = w.pods[1:] })
	next("DELETED ns/done uid-2  0")
	w.change(func() { w.pods = append(w.pods, &v1.Pod{}); w.pods[1].UID, w.pods[1].Name = "uid-3", "new" })
	next("ADDED /new uid-3 Pending 0")
}

func TestWatchEndsWithTheServer(t *testing.T) {
	w := newFakeNode(t)
	var stream grpc.ServerStreamingClient[podsv1alpha1.WatchPodsEvent]
	ctx := withDeadline(t)
	t.Run("server", func(t *testing.T) {
		_, conn := w.start(t, nil)
		var err error
		if stream, err = podsv1alpha1.NewPodsClient(conn).WatchPods(ctx, &podsv1alpha1.WatchPodsRequest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	})
	for {
		if _, err := stream.Recv(); err != nil {
			break // the server has returned, otherwise the cleanup hangs
		}
	}
}

func TestListenReplacesLeftoverSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "kubelet.sock")
	for range 2 {
		l, err := listen(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		l.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false) // as after SIGKILL
		l.Close()
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listen(t.Context(), path); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("regular file at the path: %v", err)
	}
}

func TestPodsAPIGate(t *testing.T) {
	var root string
	resources, _ := newFakeNode(t).start(t, func(c *Config, _ *Deps) { c.PodsAPI, root = false, c.RootDir })
	if _, err := resourcesv1.NewPodResourcesListerClient(resources).List(withDeadline(t), &resourcesv1.ListPodResourcesRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "pods-api")); !os.IsNotExist(err) {
		t.Errorf("socket of the Pods API: %v, want none", err)
	}
}
