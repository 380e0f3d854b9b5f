package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/kubeclient/kubeclienttest"
	"swiftlet/internal/resource/device"
)

// fakeRuntime is a container runtime that can fail.
type fakeRuntime struct {
	mu      sync.Mutex
	err     error
	network *runtimeapi.RuntimeCondition
	images  []*runtimeapi.Image
}

func (r *fakeRuntime) set(change func(*fakeRuntime)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

func (r *fakeRuntime) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil, r.err
	}
	network := r.network
	if network == nil {
		network = &runtimeapi.RuntimeCondition{Type: "NetworkReady", Status: true}
	}
	features := &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true, UserNamespaces: true}
	return &runtimeapi.StatusResponse{
		Status:          &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{{Type: "RuntimeReady", Status: true}, network}},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{{Name: "runc", Features: features}, {Features: features}},
		Features:        &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true},
	}, nil
}

func (r *fakeRuntime) Version(context.Context) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "containerd", RuntimeVersion: "v2.4.2"}, nil
}

func (r *fakeRuntime) ListImages(context.Context) ([]*runtimeapi.Image, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.images, r.err
}

// eventLog records types and reasons in order.
type eventLog struct {
	mu  sync.Mutex
	all []string
}

func (l *eventLog) Eventf(_ runtime.Object, kind, reason, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, kind+" "+reason)
	_ = fmt.Sprintf(format, args...)
}

func (l *eventLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

type fixture struct {
	*Node
	client  *fake.Clientset
	runtime *fakeRuntime
	events  *eventLog
}

// start runs a node. The caller must be in a synctest bubble.
func start(t *testing.T, client *fake.Clientset, change func(*Config, *Deps)) *fixture {
	t.Helper()
	f := newFixture(t, client, change)
	f.run(t)
	return f
}

func (f *fixture) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
}

func newFixture(t *testing.T, client *fake.Clientset, change func(*Config, *Deps)) *fixture {
	t.Helper()
	f := &fixture{client: client, events: &eventLog{}, runtime: &fakeRuntime{images: []*runtimeapi.Image{
		{Id: "p", RepoTags: []string{"registry.k8s.io/pause:3.10"}, Size: 697035},
		{Id: "b", RepoTags: []string{"docker.io/library/busybox:1.36"}, Size: 2130645},
	}}}
	on := map[string]bool{
		"ExtendWebSocketsToKubelet": true, "InPlacePodLevelResourcesVerticalScaling": true,
		"InPlacePodVerticalScalingInitContainers": true, "RestartAllContainersOnContainerExits": true,
	}
	cfg := Config{
		NodeName: "node-1", Hostname: "node-1", Registration: Registration{RegisterNode: true, ControllerManagedAttach: true},
		MaxPods: 250, Reserved: Reserved{EvictionHard: defaultEviction}, EnforceAllocatable: true,
		Heartbeats: Heartbeats{StatusUpdateFrequency: 10 * time.Second, StatusReportFrequency: 5 * time.Minute, LeaseDuration: 40 * time.Second},
		MaxImages:  50, Port: 10250, Version: "v1.37.1", SwiftletVersion: "v0.1-5", CgroupVersion: 1,
		Gate: func(name string) bool { return on[name] },
	}
	deps := Deps{Runtime: f.runtime, Log: slog.New(slog.DiscardHandler), Events: f.events}
	if client != nil {
		deps.Client = kubeclienttest.Wrap(client)
	}
	if change != nil {
		change(&cfg, &deps)
	}
	cfg.Standalone = deps.Client == nil
	state, err := NewState(cfg, recorded, deps.Log)
	if err != nil {
		t.Fatal(err)
	}
	if f.Node, err = New(state, deps); err != nil {
		t.Fatal(err)
	}
	f.network = fakeNetwork([]string{"192.0.2.2"}, nil, "192.0.2.2")
	return f
}

func (f *fixture) node(t *testing.T) *v1.Node {
	t.Helper()
	node, err := f.client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// ready returns status and message of the Ready condition.
func (f *fixture) ready(t *testing.T) string {
	t.Helper()
	node := f.node(t)
	c := condition(&node.Status, v1.NodeReady)
	return string(c.Status) + " " + c.Message
}

const isReady = "True kubelet is posting ready status"

func (f *fixture) patches() (count int) {
	for _, a := range f.client.Actions() {
		if a.Matches("patch", "nodes") {
			count++
		}
	}
	return count
}

func TestRegistrationMatchesRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, fake.NewClientset(), nil)
		node := f.node(t)
		wantLabels := map[string]string{
			"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			"kubernetes.io/hostname": "node-1", "kubernetes.io/os": "linux",
		}
		if diff := cmp.Diff(wantLabels, node.Labels); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]string{annotationAttach: "true", "swiftlet.dev/version": "v0.1-5"}, node.Annotations); diff != "" {
			t.Error(diff)
		}
		yes, no := true, false
		handler := &v1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &yes, UserNamespaces: &yes}
		want := v1.NodeStatus{
			Addresses:   []v1.NodeAddress{{Type: "InternalIP", Address: "192.0.2.2"}, {Type: "Hostname", Address: "node-1"}},
			Capacity:    f.Capacity(),
			Allocatable: f.Allocatable(),
			Conditions: []v1.NodeCondition{
				{Type: "MemoryPressure", Status: "False", Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
				{Type: "DiskPressure", Status: "False", Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
				{Type: "PIDPressure", Status: "False", Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
				{Type: "Ready", Status: "True", Reason: "KubeletReady", Message: "kubelet is posting ready status"},
			},
			DaemonEndpoints:  v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: 10250}},
			DeclaredFeatures: []string{"ExtendWebSocketsToKubelet", "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits"},
			Features:         &v1.NodeFeatures{SupplementalGroupsPolicy: &yes},
			Images: []v1.ContainerImage{
				{Names: []string{"docker.io/library/busybox:1.36"}, SizeBytes: 2130645},
				{Names: []string{"registry.k8s.io/pause:3.10"}, SizeBytes: 697035},
			},
			NodeInfo: v1.NodeSystemInfo{
				Architecture: "amd64", BootID: "5c05", ContainerRuntimeVersion: "containerd://2.4.2", KernelVersion: "6.18.44",
				KubeletVersion: "v1.37.1", MachineID: "3d12", OperatingSystem: "linux", OSImage: "Debian GNU/Linux 12 (bookworm)",
				RunningInUserNamespace: &no, SystemUUID: "3d12",
			},
			RuntimeHandlers: []v1.NodeRuntimeHandler{{Name: "", Features: handler}, {Name: "runc", Features: handler}},
		}
		got := node.Status.DeepCopy()
		now := metav1.Now()
		for i := range got.Conditions {
			c := &got.Conditions[i]
			if !c.LastHeartbeatTime.Equal(&now) || !c.LastTransitionTime.Equal(&now) {
				t.Errorf("times of %s: %v, %v", c.Type, c.LastHeartbeatTime, c.LastTransitionTime)
			}
			c.LastHeartbeatTime, c.LastTransitionTime = metav1.Time{}, metav1.Time{}
		}
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		wantEvents := []string{"Normal Starting", "Warning CgroupV1", "Normal NodeHasSufficientMemory",
			"Normal NodeHasNoDiskPressure", "Normal NodeHasSufficientPID", "Normal NodeReady"}
		if diff := cmp.Diff(wantEvents, f.events.take()); diff != "" {
			t.Error(diff)
		}
		if n := f.patches(); n != 0 {
			t.Errorf("%d patches after the create, want none", n)
		}
	})
}

func TestRegistrationVariants(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config, *Deps)
		show   func(*v1.Node) []any
		want   string
	}{
		"labels_and_taints": {func(c *Config, _ *Deps) {
			c.Labels = map[string]string{"a": "b", "kubernetes.io/hostname": "other"}
			c.Taints = []v1.Taint{{Key: "t", Effect: v1.TaintEffectNoSchedule}}
		}, func(n *v1.Node) []any { return []any{n.Labels["a"], n.Labels["kubernetes.io/hostname"], n.Spec.Taints} },
			"b other [{t  NoSchedule <nil>}]"},
		"external_cloud": {func(c *Config, _ *Deps) {
			c.ExternalCloud, c.ProviderID = true, "x://1"
		}, func(n *v1.Node) []any { return []any{n.Spec.Taints[0].Key, n.Spec.ProviderID, n.Status.Addresses} },
			"node.cloudprovider.kubernetes.io/uninitialized x://1 [{Hostname node-1}]"},
		"external_cloud_with_node_ip": {func(c *Config, _ *Deps) {
			c.ExternalCloud, c.NodeIPs = true, ips("192.0.2.2")
		}, func(n *v1.Node) []any {
			return []any{n.Annotations["alpha.kubernetes.io/provided-node-ip"], n.Status.Addresses}
		}, "192.0.2.2 [{InternalIP 192.0.2.2} {Hostname node-1}]"},
		"without_attach_controller_max_one_image": {func(c *Config, _ *Deps) {
			c.ControllerManagedAttach, c.MaxImages = false, 1
		}, func(n *v1.Node) []any { return []any{n.Annotations[annotationAttach] == "", len(n.Status.Images)} },
			"true 1"},
		"device_plugin_resources": {func(_ *Config, d *Deps) {
			d.Devices = func() device.Amounts {
				return device.Amounts{Capacity: amounts("x.com/gpu", "4"), Allocatable: amounts("x.com/gpu", "3"), Removed: []v1.ResourceName{"x.com/old"}}
			}
		}, func(n *v1.Node) []any {
			return []any{text(n.Status.Capacity)["x.com/gpu"], text(n.Status.Allocatable)["x.com/gpu"], text(n.Status.Capacity)["x.com/old"]}
		}, "4 3 0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, fake.NewClientset(), c.change)
				if got := strings.TrimSpace(fmt.Sprintln(c.show(f.node(t))...)); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			})
		})
	}
}

func TestAdoptsExistingNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		anHourAgo := metav1.NewTime(time.Now().Add(-time.Hour))
		existing := &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "u", Labels: map[string]string{
				"kubernetes.io/hostname": "old", "mine": "kept"}},
			Spec: v1.NodeSpec{Unschedulable: true, Taints: []v1.Taint{{Key: "k"}}},
			Status: v1.NodeStatus{
				Capacity:  amounts("hugepages-32Mi", "0", "x.com/widget", "5"),
				NodeInfo:  v1.NodeSystemInfo{BootID: "earlier"},
				Addresses: []v1.NodeAddress{{Type: "InternalIP", Address: "192.0.2.77"}},
				Conditions: []v1.NodeCondition{
					{Type: "MemoryPressure", Status: "False", LastTransitionTime: anHourAgo},
					{Type: "NetworkUnavailable", Status: "False", Reason: "CNI", LastTransitionTime: anHourAgo},
					{Type: "Ready", Status: "Unknown", LastTransitionTime: anHourAgo},
				},
			},
		}
		client := fake.NewClientset(existing)
		f := start(t, client, func(c *Config, _ *Deps) {
			c.Labels = map[string]string{"mine": "from flag"}
			c.Taints = []v1.Taint{{Key: "new", Effect: v1.TaintEffectNoSchedule}}
		})
		var requests []string
		for _, action := range client.Actions() {
			if action.GetResource().Resource == "nodes" {
				requests = append(requests, action.GetVerb())
			}
		}
		if want := []string{"get", "patch"}; !slices.Equal(requests, want) {
			t.Errorf("requests for the Node: %v, want %v", requests, want)
		}
		node := f.node(t)
		if node.Labels["kubernetes.io/hostname"] != "node-1" || node.Labels["mine"] != "kept" || len(node.Spec.Taints) != 1 {
			t.Errorf("labels %v, taints %v", node.Labels, node.Spec.Taints)
		}
		if _, ok := node.Status.Capacity["hugepages-32Mi"]; ok {
			t.Error("a huge page size that the kernel no longer has is still in the capacity")
		}
		if widget := node.Status.Allocatable["x.com/widget"]; widget.String() != "5" {
			t.Errorf("allocatable of an extended resource is %s, want 5", widget.String())
		}
		if diff := cmp.Diff([]net.IP{net.ParseIP("192.0.2.2")}, hostIPs(node.Status.Addresses)); diff != "" {
			t.Error(diff)
		}
		memory, cni, ready := condition(&node.Status, "MemoryPressure"), condition(&node.Status, "NetworkUnavailable"), condition(&node.Status, "Ready")
		if !memory.LastTransitionTime.Equal(&anHourAgo) || cni == nil || cni.Reason != "CNI" || ready.LastTransitionTime.Equal(&anHourAgo) {
			t.Errorf("conditions: %+v", node.Status.Conditions)
		}
		want := []string{"Normal Starting", "Warning CgroupV1", "Normal NodeHasNoDiskPressure", "Normal NodeHasSufficientPID",
			"Warning Rebooted", "Normal NodeReady", "Normal NodeNotSchedulable"}
		if diff := cmp.Diff(want, f.events.take()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAdoptsNodeWhenCreateIsForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
		client.PrependReactor("create", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(v1.Resource("nodes"), "node-1", errors.New("no"))
		})
		if f := start(t, client, nil); f.ready(t) != isReady {
			t.Error(f.ready(t))
		}
	})
}

func TestNotReadyWhileRuntimeIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, fake.NewClientset(), nil)
		f.events.take()
		time.Sleep(3 * time.Second)

		f.runtime.set(func(r *fakeRuntime) { r.err = errors.New("connection refused") })
		f.Notify() // as observe does when the event stream breaks
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		if f.ready(t) != isReady {
			t.Errorf("not ready after 0.9 s: %s", f.ready(t))
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if want := "False container runtime is down"; f.ready(t) != want {
			t.Errorf("after 1.1 s: %s, want %s", f.ready(t), want)
		}
		patches := f.patches()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if f.patches() != patches {
			t.Errorf("%d patches while nothing changed", f.patches()-patches)
		}

		f.runtime.set(func(r *fakeRuntime) { r.err = nil })
		time.Sleep(unhealthyPeriod)
		synctest.Wait()
		if f.ready(t) != isReady {
			t.Errorf("%v after its recovery: %s", unhealthyPeriod, f.ready(t))
		}
		if diff := cmp.Diff([]string{"Normal NodeNotReady", "Normal NodeReady"}, f.events.take()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReadyCondition(t *testing.T) {
	networkNotReady := &runtimeapi.RuntimeCondition{Type: "NetworkReady", Reason: "NetworkPluginNotReady", Message: "cni plugin not initialized"}
	for name, c := range map[string]struct {
		change func(*fakeRuntime, *Deps)
		want   string
	}{
		"ready": {func(*fakeRuntime, *Deps) {}, isReady},
		"runtime_never_answered": {func(r *fakeRuntime, _ *Deps) { r.err = errors.New("x") },
			"False [container runtime status check may not have completed yet, network state unknown]"},
		"network_not_ready": {func(r *fakeRuntime, _ *Deps) { r.network = networkNotReady },
			"False container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized"},
		"pleg_unhealthy_and_shutting_down": {func(r *fakeRuntime, d *Deps) {
			d.PLEGHealthy = func() error { return errors.New("pleg was last seen active 3m0s ago; threshold is 3m0s") }
			d.ReadyChecks = []func() error{func() error { return nil }, func() error { return errors.New("node is shutting down") }}
		}, "False [PLEG is not healthy: pleg was last seen active 3m0s ago; threshold is 3m0s, node is shutting down]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil, nil)
			c.change(f.runtime, &f.deps)
			f.checkRuntime(t.Context())
			node := f.initialNode()
			f.fill(t.Context(), node)
			ready := condition(&node.Status, v1.NodeReady)
			if got := string(ready.Status) + " " + ready.Message; got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestPressureConditionsAndEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var p []v1.NodeConditionType
		set := func(to ...v1.NodeConditionType) { mu.Lock(); p = to; mu.Unlock() }
		f := start(t, fake.NewClientset(), func(_ *Config, d *Deps) {
			d.Pressures = func() []v1.NodeConditionType { mu.Lock(); defer mu.Unlock(); return p }
		})
		f.events.take()
		set(v1.NodeMemoryPressure, v1.NodePIDPressure)
		f.Notify()
		synctest.Wait()
		node := f.node(t)
		if c := condition(&node.Status, v1.NodeMemoryPressure); c.Status != v1.ConditionTrue || c.Reason != "KubeletHasInsufficientMemory" {
			t.Errorf("%+v", c)
		}
		set(v1.NodeMemoryPressure)
		f.Notify()
		synctest.Wait()
		want := []string{"Normal NodeHasInsufficientMemory", "Normal NodeHasInsufficientPID", "Normal NodeHasSufficientPID"}
		if diff := cmp.Diff(want, f.events.take()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReportsOnlyWhenDueOrChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, fake.NewClientset(), nil)
		time.Sleep(5*time.Minute - time.Second)
		synctest.Wait()
		if n := f.patches(); n != 0 {
			t.Errorf("%d patches though nothing changed", n)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if n := f.patches(); n != 1 {
			t.Errorf("%d patches when the report was due", n)
		}
		f.runtime.set(func(r *fakeRuntime) { r.images = r.images[:1] })
		time.Sleep(imagesPeriod + 10*time.Second)
		synctest.Wait()
		if node := f.node(t); f.patches() != 2 || len(node.Status.Images) != 1 {
			t.Errorf("a new image list was not reported: %d patches, %v", f.patches(), node.Status.Images)
		}
	})
}
