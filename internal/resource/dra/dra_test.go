package dra

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"swiftlet/internal/pluginreg"
	"swiftlet/internal/pod"
)

const driverName = "gpu.example.com"

// fakeDriver prepares every claim as two devices, named after the claim.
type fakeDriver struct {
	drav1.UnimplementedDRAPluginServer
	healthv1.UnimplementedDRAResourceHealthServer
	mu    sync.Mutex
	calls []string
	fault string

	reports chan *healthv1.NodeWatchResourcesResponse
	refusal error // of the health watch
}

func newFakeDriver() *fakeDriver {
	return &fakeDriver{reports: make(chan *healthv1.NodeWatchResourcesResponse)}
}

func (f *fakeDriver) NodePrepareResources(_ context.Context, request *drav1.NodePrepareResourcesRequest) (*drav1.NodePrepareResourcesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	response := &drav1.NodePrepareResourcesResponse{Claims: map[string]*drav1.NodePrepareResourceResponse{}}
	for _, c := range request.Claims {
		f.calls = append(f.calls, "prepare "+c.Name)
		response.Claims[c.Uid] = &drav1.NodePrepareResourceResponse{Error: f.fault, Devices: []*drav1.Device{
			{RequestNames: []string{"one"}, PoolName: "p", DeviceName: c.Name, CdiDeviceIds: []string{"x/y=" + c.Name}},
			{RequestNames: []string{"two"}, PoolName: "p", DeviceName: c.Name + "2", CdiDeviceIds: []string{"x/y=" + c.Name + "2"}},
		}}
	}
	return response, nil
}

func (f *fakeDriver) NodeUnprepareResources(_ context.Context, request *drav1.NodeUnprepareResourcesRequest) (*drav1.NodeUnprepareResourcesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	response := &drav1.NodeUnprepareResourcesResponse{Claims: map[string]*drav1.NodeUnprepareResourceResponse{}}
	for _, c := range request.Claims {
		f.calls = append(f.calls, "unprepare "+c.Name)
		response.Claims[c.Uid] = &drav1.NodeUnprepareResourceResponse{Error: f.fault}
	}
	return response, nil
}

func (f *fakeDriver) takeCalls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

// node is a manager with a driver and a fake API server.
type node struct {
	*testing.T
	*Manager
	dir     string
	driver  *fakeDriver
	plugin  pluginreg.Plugin
	claims  map[string]*resourceapi.ResourceClaim
	events  []string
	clock   clock.WithTicker
	slices  []string    // drivers that have ResourceSlices
	deleted chan string // receives the drivers whose slices are deleted

	mu    sync.Mutex
	woken []types.UID
}

func (n *node) wake(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.woken = append(n.woken, uid)
}

// takeWoken returns the pods that were woken since its last call.
func (n *node) takeWoken() []types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.woken
	n.woken = nil
	return all
}

func (n *node) Claim(_ context.Context, _, name string) (*resourceapi.ResourceClaim, error) {
	if c := n.claims[name]; c != nil {
		return c, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "resourceclaims"}, name)
}
func (n *node) Drivers(context.Context) ([]string, error) { return n.slices, nil }
func (n *node) DeleteSlices(_ context.Context, driver string) error {
	n.deleted <- driver
	return nil
}
func (n *node) Eventf(_ apiruntime.Object, _, reason, format string, args ...any) {
	n.events = append(n.events, reason)
}

func newNode(t *testing.T) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "dra") // short enough for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := &node{T: t, dir: dir, driver: newFakeDriver(), claims: map[string]*resourceapi.ResourceClaim{}, clock: clock.RealClock{}, deleted: make(chan string, 1)}
	n.plugin = pluginreg.Plugin{Type: "DRAPlugin", Name: driverName, Endpoint: filepath.Join(dir, "d.sock"), Versions: []string{drav1.DRAPluginService}}
	n.serve(n.driver, n.plugin.Endpoint)
	n.start()
	return n
}

// serve starts the driver's server on the socket; kill stops it.
func (n *node) serve(d *fakeDriver, endpoint string) (kill func()) {
	n.Helper()
	listener, err := net.Listen("unix", endpoint)
	if err != nil {
		n.Fatal(err)
	}
	server := grpc.NewServer()
	drav1.RegisterDRAPluginServer(server, d)
	drav1beta1.RegisterDRAPluginServer(server, drav1beta1.V1ServerWrapper{DRAPluginServer: d})
	healthv1.RegisterDRAResourceHealthServer(server, d)
	healthv1alpha1.RegisterDRAResourceHealthServer(server, healthv1.V1ServerWrapper{Server: d})
	go server.Serve(listener)
	n.Cleanup(server.Stop)
	return server.Stop
}

// start creates the manager, as a start or restart of the agent does.
func (n *node) start() {
	n.Helper()
	m, err := New(Config{RootDir: n.dir, Health: true, HealthMessages: true}, Deps{
		API: n, Wake: n.wake, Events: n, Clock: n.clock, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		n.Fatal(err)
	}
	n.Manager = m
	n.Cleanup(m.disconnect)
}

func (n *node) register() {
	n.Helper()
	if err := errors.Join(n.Validate(n.Context(), n.plugin), n.Register(n.Context(), n.plugin)); err != nil {
		n.Fatal(err)
	}
}

// allocate creates a claim that is reserved for these pods.
func (n *node) allocate(name string, pods ...string) {
	c := &resourceapi.ResourceClaim{}
	c.Name, c.Namespace, c.UID = name, "ns", types.UID(name+"-uid")
	c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "one", Driver: driverName, Pool: "p", Device: name}}}}
	for _, uid := range pods {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: uid, UID: types.UID(uid)})
	}
	n.claims[name] = c
}

func claimingPod(uid, claim string, request string) *v1.Pod {
	p := &v1.Pod{Spec: v1.PodSpec{
		ResourceClaims: []v1.PodResourceClaim{{Name: "mine", ResourceClaimName: ptr.To(claim)}},
		Containers:     []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Claims: []v1.ResourceClaim{{Name: "mine", Request: request}}}}, {Name: "without"}},
	}}
	p.UID, p.Name, p.Namespace = types.UID(uid), uid, "ns"
	return p
}

func (n *node) prepare(p *v1.Pod) error { return n.Prepare(n.Context(), p, &pod.Observed{}) }

func (n *node) expectCalls(calls ...string) {
	n.Helper()
	if got := n.driver.takeCalls(); !slices.Equal(got, calls) {
		n.Errorf("calls to the driver: %q, want %q", got, calls)
	}
}

func (n *node) cdi(p *v1.Pod, container int) string {
	n.Helper()
	devices, err := n.CDIDevices(p, &p.Spec.Containers[container])
	if err != nil {
		n.Error(err)
	}
	var ids []string
	for _, d := range devices {
		ids = append(ids, d.Name)
	}
	return strings.Join(ids, " ")
}

// A shared claim is prepared once and unprepared after the last pod, across a restart.
func TestSharedClaim(t *testing.T) {
	n := newNode(t)
	n.register()
	n.allocate("claim", "one", "two")
	one, two := claimingPod("one", "claim", "two"), claimingPod("two", "claim", "")
	for _, p := range []*v1.Pod{one, two, one} {
		if err := n.prepare(p); err != nil {
			t.Fatal(err)
		}
	}
	n.expectCalls("prepare claim")
	if got := n.cdi(one, 0); got != "x/y=claim2" {
		t.Errorf("one request gives %s", got)
	}
	if got := n.cdi(two, 0); got != "x/y=claim x/y=claim2" {
		t.Errorf("the whole claim gives %s", got)
	}
	if got := n.cdi(two, 1); got != "" {
		t.Errorf("a container without claims gets %s", got)
	}
	resources := n.DynamicResources(two, &two.Spec.Containers[0])
	if len(resources) != 1 || resources[0].ClaimName != "claim" || len(resources[0].ClaimResources) != 2 || resources[0].ClaimResources[1].DeviceName != "claim2" {
		t.Errorf("dynamic resources %v", resources)
	}
	if use := n.InUse(); use[anyDriver] != 1 || use[driverName] != 1 {
		t.Errorf("in use: %v", use)
	}

	n.start()
	n.register()
	running := &pod.Observed{Sandboxes: []pod.Sandbox{{ID: "s", Ready: true}}}
	if err := n.Prepare(t.Context(), two, running); err != nil || n.cdi(two, 0) != "x/y=claim x/y=claim2" {
		t.Errorf("after a restart: %v, %s", err, n.cdi(two, 0))
	}
	if err := n.Release(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	n.expectCalls()
	if err := n.Retain(t.Context(), func(types.UID) bool { return false }); err != nil {
		t.Fatal(err)
	}
	n.expectCalls("unprepare claim")
	n.start()
	if len(n.InUse()) != 1 || n.InUse()[anyDriver] != 0 {
		t.Errorf("still in use: %v", n.InUse())
	}
}

func TestPrepareErrors(t *testing.T) {
	n := newNode(t)
	template := claimingPod("templated", "", "")
	template.Spec.ResourceClaims[0] = v1.PodResourceClaim{Name: "mine", ResourceClaimTemplateName: ptr.To("t")}
	n.allocate("foreign", "other")
	n.allocate("mine", "one")
	n.claims["bare"] = &resourceapi.ResourceClaim{}
	n.claims["bare"].Name, n.claims["bare"].Status.ReservedFor = "bare", n.claims["mine"].Status.ReservedFor
	for name, c := range map[string]struct {
		pod  *v1.Pod
		want string
	}{
		"claim not created": {template, `prepare dynamic resources: pod "ns/templated": ResourceClaim not created yet`},
		"claim not found":   {claimingPod("one", "none", ""), `prepare dynamic resources: fetch ResourceClaim none: resourceclaims "none" not found`},
		"not reserved":      {claimingPod("one", "foreign", ""), "prepare dynamic resources: pod one (one) is not allowed to use ResourceClaim foreign (foreign-uid)"},
		"not allocated":     {claimingPod("one", "bare", ""), "prepare dynamic resources: ResourceClaim bare: not allocated"},
		"no driver":         {claimingPod("one", "mine", ""), "prepare dynamic resources: DRA driver gpu.example.com is not registered"},
	} {
		n.events = nil
		if err := n.prepare(c.pod); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if !slices.Equal(n.events, []string{"FailedPrepareDynamicResources"}) {
			t.Errorf("%s: events %q", name, n.events)
		}
	}
	if len(n.InUse()) != 1 {
		t.Errorf("a claim was recorded: %v", n.InUse())
	}
	n.register()
	if !slices.Contains(n.takeWoken(), "one") {
		t.Error("the pod is not woken when its driver registers")
	}
	n.driver.fault = "burnt"
	if err := n.prepare(claimingPod("one", "mine", "")); err == nil || !strings.HasSuffix(err.Error(), "NodePrepareResources failed for ResourceClaim mine: burnt") {
		t.Errorf("driver's error: %v", err)
	}
	if err := n.Release(t.Context(), "one"); err == nil || !strings.HasSuffix(err.Error(), "NodeUnprepareResources failed for ResourceClaim mine: burnt") {
		t.Errorf("driver's error: %v", err)
	}
	n.driver.fault = ""
	if err := n.Release(t.Context(), "one"); err != nil || n.InUse()[anyDriver] != 0 {
		t.Errorf("not released: %v", err)
	}
}

func TestCorruptCheckpoint(t *testing.T) {
	n := newNode(t)
	for _, text := range []string{"", "{", `{"Data":"{}","Checksum":1}`} {
		if err := os.WriteFile(n.checkpointPath(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n.start()
		if _, err := os.Stat(n.checkpointPath() + ".bad"); err != nil {
			t.Errorf("%q is not moved aside: %v", text, err)
		}
	}
}

// The checkpoint has the format that the reference kubelet reads and writes.
func TestCheckpointFormat(t *testing.T) {
	n := newNode(t)
	const text = `{"Data":"{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\",\"ClaimInfoStateList\":[{\"ClaimUID\":\"u\",\"ClaimName\":\"gpu\",\"Namespace\":\"ns\",\"PodUIDs\":{\"p\":{}},\"DriverState\":{\"gpu.example.com\":{\"Devices\":[{\"PoolName\":\"n\",\"DeviceName\":\"d\",\"ShareID\":null,\"RequestNames\":[\"r\"],\"CDIDeviceIDs\":[\"x/y=d\"]}]}}}]}","Checksum":516969169}`
	if err := os.WriteFile(n.checkpointPath(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n.start()
	if n.InUse()["gpu.example.com"] != 1 {
		t.Errorf("read %v", n.InUse())
	}
	if err := n.save(); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(n.checkpointPath()); string(got) != text {
		t.Errorf("wrote %s, want %s", got, text)
	}
}
