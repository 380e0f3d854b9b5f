package device

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"swiftlet/internal/pluginreg"
	"swiftlet/internal/pod"
	"swiftlet/internal/resource/numa"
	"swiftlet/test/poll"
)

// admit reserves the pod's devices, container by container.
func (n *node) admit(p *v1.Pod) error {
	for c := range containersInOrder(p) {
		if err := n.Allocate(n.Context(), p, c, numa.Hint{}); err != nil {
			return err
		}
	}
	return nil
}

// admitAndPrepare admits a pod and prepares its devices.
func (n *node) admitAndPrepare(p *v1.Pod) {
	n.Helper()
	if err := n.admit(p); err != nil {
		n.Fatal(err)
	}
	if err := n.Prepare(n.Context(), p, &pod.Observed{}); err != nil {
		n.Fatal(err)
	}
}

// devicesOf returns the devices of a container.
func (n *node) devicesOf(uid, container string) string {
	var ids []string
	for _, d := range n.Devices(types.UID(uid), container) {
		ids = append(ids, d.DeviceIds...)
	}
	return join(ids)
}

func (n *node) expectDevices(uid, container, want string) {
	n.Helper()
	if got := n.devicesOf(uid, container); got != want {
		n.Errorf("container %s of pod %s has %q, want %q", container, uid, got, want)
	}
}

func expectRejection(t *testing.T, err error, want string) {
	t.Helper()
	var r *pod.Rejection
	if !errors.As(err, &r) {
		t.Fatalf("%v is no rejection", err)
	}
	if r.Reason != "UnexpectedAdmissionError" || r.Message != want {
		t.Errorf("rejected with %s: %q, want %q", r.Reason, r.Message, want)
	}
}

func TestAllocateAndRelease(t *testing.T) {
	n := newNode(t)
	f := n.join("gpu.sock", &pluginapi.DevicePluginOptions{PreStartRequired: true}, device("a"), device("b", 0, 1), unhealthy("c"))
	n.expectAmounts(3, 2)
	p := podOf("one", requesting("c", 2), v1.Container{Name: "without"})
	n.admitAndPrepare(p)
	n.expectDevices("one", "c", "a,b,b") // b is on two NUMA nodes
	n.expectDevices("one", "without", "")

	opts, err := n.Options(t.Context(), p, &p.Spec.Containers[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(opts.Envs) != 1 || string(opts.Envs[0].Value) != "a,b" || len(opts.Devices) != 2 || opts.Devices[1].ContainerPath != "/dev/gpu-b" {
		t.Errorf("options are %+v", opts)
	}
	if want := []string{"allocate a,b", "prestart a,b"}; !slices.Equal(f.calls, want) {
		t.Errorf("calls to the plugin: %q, want %q", f.calls, want)
	}
	err = n.admit(podOf("two", requesting("c", 1)))
	if want := "requested number of devices unavailable for example.com/gpu. Requested: 1, Available: 0"; err == nil || err.Error() != want {
		t.Errorf("without free devices: %v, want %s", err, want)
	}
	n.Release("two")
	n.Release("one")
	n.admitAndPrepare(podOf("three", requesting("c", 1)))
	n.expectDevices("three", "c", "a")
}

// A container reuses the devices of init containers that have ended.
func TestInitContainersPassDevicesOn(t *testing.T) {
	n := newNode(t)
	n.join("gpu.sock", nil, device("a"), device("b"), device("c"))
	always := v1.ContainerRestartPolicyAlways
	first, side := requesting("first", 2), requesting("side", 1)
	side.RestartPolicy = &always
	p := podOf("one", requesting("main", 2))
	p.Spec.InitContainers = []v1.Container{first, side}
	n.admitAndPrepare(p)
	n.expectDevices("one", "first", "a,b")
	n.expectDevices("one", "side", "a")
	n.expectDevices("one", "main", "b,c")
}

func TestHealth(t *testing.T) {
	n := newNode(t)
	f := n.join("gpu.sock", nil, device("a"), device("b"))
	n.admitAndPrepare(podOf("one", requesting("c", 1)))
	n.list(f, unhealthy("a"), device("b"))
	if got := <-n.woken; got != "one" {
		t.Errorf("%s was woken", got)
	}
	n.expectAmounts(2, 1)
	health := n.Health("one", "c")
	if len(health) != 1 || health[0].Name != gpu || health[0].Resources[0] != (v1.ResourceHealth{ResourceID: "a", Health: v1.ResourceHealthStatusUnhealthy}) {
		t.Errorf("health is %+v", health)
	}
	n.list(f, device("a"), device("b"))
	<-n.woken
	if health := n.Health("one", "c"); health[0].Resources[0].Health != v1.ResourceHealthStatusHealthy {
		t.Errorf("health is %+v", health)
	}
	if len(n.AllocatableDevices()) != 2 {
		t.Errorf("allocatable: %v", n.AllocatableDevices())
	}
}

// After a plugin disconnected, its devices remain in the capacity, and pods wait for it.
func TestPluginDisconnects(t *testing.T) {
	n := newNode(t)
	f := n.join("gpu.sock", nil, device("a"), device("b"))
	n.leave(f)
	n.expectAmounts(2, 0)
	p := podOf("one", requesting("c", 1))
	if err := n.admit(p); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := n.Prepare(t.Context(), p, &pod.Observed{}); !errors.Is(err, errTransient) {
			t.Fatalf("prepared without a plugin: %v", err)
		}
	}
	if len(n.events) != 1 || <-n.events != "WaitingForDevicePlugin" {
		t.Error("not one event for the wait")
	}
	n.join("gpu.sock", nil, device("a"), device("b"))
	if got := <-n.woken; got != "one" {
		t.Errorf("%s was woken", got)
	}
	n.admitAndPrepare(p)
	n.expectDevices("one", "c", "a")
}

func TestPluginStaysAway(t *testing.T) {
	n := newNode(t)
	n.leave(n.join("gpu.sock", nil, device("a")))
	p := podOf("one", requesting("c", 1))
	if err := n.admit(p); err != nil {
		t.Fatal(err)
	}
	_ = n.Prepare(t.Context(), p, &pod.Observed{})
	n.clock.SetTime(n.clock.Now().Add(pluginGrace + time.Second))
	// Without allocations the resource is no longer managed, and admission rejects the pod.
	if n.expectAmounts(-1, -1); n.Manages(gpu) || !slices.Equal(n.Amounts().Removed, []v1.ResourceName{gpu}) {
		t.Errorf("the resource is still there: %+v", n.Amounts())
	}
	n.join("gpu.sock", nil, device("a"))
	if n.expectAmounts(1, 1); len(n.Amounts().Removed) != 0 {
		t.Error("reported as removed after the plugin reconnected")
	}
}

// During a rolling update the newer plugin is active, and after its failure the older.
func TestRollingUpdateOfPlugin(t *testing.T) {
	n := newNode(t)
	old := n.join("old.sock", nil, device("a"))
	newer := n.join("new.sock", nil, device("a"), device("b"))
	n.expectAmounts(2, 2)
	old.lists <- []*pluginapi.Device{unhealthy("a")} // ignored
	n.leave(newer)
	poll.Until(n, "the old one's list", func() bool { c, a := n.amounts(); return c == 1 && a == 0 })
	n.join("old.sock", nil, device("x"), device("y"), device("z")) // the same socket again
	poll.Until(n, "the new list", func() bool { c, a := n.amounts(); return c == 3 && a == 3 })
}

// After a restart of the agent, allocations are restored and the plugin registers again.
func TestRestart(t *testing.T) {
	n := newNode(t)
	f := n.join("gpu.sock", nil, device("a"), device("b"))
	p := podOf("one", requesting("c", 1))
	n.admitAndPrepare(p)
	n.stop()
	if _, err := os.Stat(filepath.Join(n.dir, "gpu.sock")); err != nil {
		t.Fatal("the plugin's socket was removed before the restart")
	}
	n.running["one/c"] = true
	n.start()
	if _, err := os.Stat(filepath.Join(n.dir, "gpu.sock")); err == nil {
		t.Error("the plugin's socket was not removed")
	}
	n.expectAmounts(0, 0)
	n.expectDevices("one", "c", "a")
	// A running container is admitted, and its pod's other containers need no plugin.
	if err := n.admit(p); err != nil {
		t.Error(err)
	}
	observed := &pod.Observed{Containers: []pod.Container{{Name: "c", State: pod.Running}}}
	if err := n.Prepare(t.Context(), p, observed); err != nil {
		t.Error(err)
	}
	f.server.Stop()
	n.join("gpu.sock", nil, device("a"), device("b"))
	n.expectAmounts(2, 2)
	n.admitAndPrepare(podOf("two", requesting("c", 1)))
	n.expectDevices("two", "c", "b")
}

// A pod of which a container ran when the agent restarted keeps its devices: a container that
// crashes later starts with them, whatever its plugin does. The reference kubelet does the same.
func TestCrashAfterRestart(t *testing.T) {
	for name, c := range map[string]struct {
		running []string // when the agent restarts
		live    []string // when the crashed container starts
		plugin  []*pluginapi.Device
	}{
		"all crash, plugin is absent":                    {running: []string{"c", "plain"}},
		"one with device crashes, plugin is absent":      {running: []string{"c", "plain"}, live: []string{"plain"}},
		"one without device crashes, plugin is absent":   {running: []string{"plain"}},
		"one with device had crashed, plugin is absent":  {running: []string{"plain"}, live: []string{"plain"}},
		"all crash, device is unhealthy":                 {running: []string{"c", "plain"}, plugin: []*pluginapi.Device{unhealthy("a")}},
		"one with device crashes, plugin has no devices": {running: []string{"c", "plain"}, live: []string{"plain"}, plugin: []*pluginapi.Device{}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			f := n.join("gpu.sock", nil, device("a"))
			p := podOf("one", requesting("c", 1), v1.Container{Name: "plain"})
			n.admitAndPrepare(p)
			n.stop()
			f.server.Stop()
			for _, container := range c.running {
				n.running["one/"+container] = true
			}
			n.start()
			if err := n.admit(p); err != nil {
				t.Fatal(err)
			}
			if c.plugin != nil {
				n.join("gpu.sock", nil, c.plugin...)
			}
			observed := &pod.Observed{}
			for _, container := range c.live {
				observed.Containers = append(observed.Containers, pod.Container{Name: container, State: pod.Running})
			}
			if err := n.Prepare(t.Context(), p, observed); err != nil {
				t.Fatal(err)
			}
			options, err := n.Options(t.Context(), p, &p.Spec.Containers[0])
			if err != nil || len(options.Devices) != 1 || options.Devices[0].HostPath != "/dev/a" {
				t.Errorf("options are %+v, %v", options, err)
			}
		})
	}
}

// After a reboot no container runs, and the plugin registers later, with the device or without.
func TestReboot(t *testing.T) {
	for name, c := range map[string]struct {
		devices []*pluginapi.Device
		late    bool
		want    string
	}{
		"device is healthy":        {devices: []*pluginapi.Device{device("a"), device("b")}},
		"device is unhealthy":      {devices: []*pluginapi.Device{unhealthy("a"), device("b")}, want: "Allocate failed due to previously allocated devices are no longer healthy; cannot allocate unhealthy devices example.com/gpu, which is unexpected"},
		"no device":                {devices: []*pluginapi.Device{}, want: "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices example.com/gpu, which is unexpected"},
		"plugin does not register": {late: true, want: "Allocate failed due to cannot allocate unregistered device example.com/gpu, which is unexpected"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			f := n.join("gpu.sock", nil, device("a"), device("b"))
			p := podOf("one", requesting("c", 1))
			n.admitAndPrepare(p)
			n.stop()
			f.server.Stop()
			n.start()
			if err := n.admit(p); err != nil {
				t.Fatal(err)
			}
			if err := n.Prepare(t.Context(), p, &pod.Observed{}); !errors.Is(err, errTransient) {
				t.Fatalf("prepared without a plugin: %v", err)
			}
			if c.late {
				n.clock.SetTime(n.clock.Now().Add(pluginGrace + time.Second))
			} else {
				n.join("gpu.sock", nil, c.devices...)
			}
			err := n.Prepare(t.Context(), p, &pod.Observed{})
			if c.want != "" {
				expectRejection(t, err, c.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			n.expectDevices("one", "c", "a")
		})
	}
}

// A running container is admitted even if its allocation is not in the checkpoint.
func TestRunningContainerWithoutCheckpoint(t *testing.T) {
	n := newNode(t)
	n.join("gpu.sock", nil)
	n.running["one/c"] = true
	if err := n.admit(podOf("one", requesting("c", 1))); err != nil {
		t.Error(err)
	}
}

func TestRetain(t *testing.T) {
	n := newNode(t)
	n.join("gpu.sock", nil, device("a"))
	n.admitAndPrepare(podOf("one", requesting("c", 1)))
	n.Retain(func(uid types.UID) bool { return uid == "one" })
	n.expectDevices("one", "c", "a")
	n.Retain(func(types.UID) bool { return false })
	if err := n.Written(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.stop()
	n.start()
	n.expectDevices("one", "c", "")
}

func TestCorruptCheckpoint(t *testing.T) {
	n := newNode(t)
	n.join("gpu.sock", nil, device("a"))
	n.admitAndPrepare(podOf("one", requesting("c", 1)))
	n.stop()
	if err := os.WriteFile(n.checkpointPath(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.start()
	if _, err := os.Stat(n.checkpointPath() + ".bad"); err != nil {
		t.Error("the corrupt file is not changed aside:", err)
	}
}

func TestChangedRequest(t *testing.T) {
	n := newNode(t)
	n.join("gpu.sock", nil, device("a"), device("b"))
	n.admitAndPrepare(podOf("one", requesting("c", 1)))
	err := n.admit(podOf("one", requesting("c", 2)))
	if want := `pod "one" container "c" changed request for resource "example.com/gpu" from 1 to 2`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestPreferredAllocation(t *testing.T) {
	n := newNode(t)
	f := n.join("gpu.sock", &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true}, device("a"), device("b"), device("c"))
	f.preferred = []string{"c"}
	n.admitAndPrepare(podOf("one", requesting("c", 1)))
	n.expectDevices("one", "c", "c")
	// During the call, another pod takes the preferred device.
	f.preferred = []string{"b"}
	f.onPrefer = func() {
		f.onPrefer = nil
		if err := n.admit(podOf("quick", requesting("c", 1))); err != nil {
			t.Error(err)
		}
	}
	n.admitAndPrepare(podOf("two", requesting("c", 1)))
	n.expectDevices("two", "c", "a")
	n.expectDevices("quick", "c", "b")
}

func TestPluginAllocateFails(t *testing.T) {
	n := newNode(t)
	f := n.join("gpu.sock", nil, device("a"))
	f.err = status.Error(codes.Unknown, "burnt")
	p := podOf("one", requesting("c", 1))
	if err := n.admit(p); err != nil {
		t.Fatal(err)
	}
	expectRejection(t, n.Prepare(t.Context(), p, &pod.Observed{}), "Allocate failed due to rpc error: code = Unknown desc = burnt, which is unexpected")
	f.err = status.Error(codes.Unavailable, "not now")
	if err := n.Prepare(t.Context(), p, &pod.Observed{}); !errors.Is(err, errTransient) {
		t.Errorf("unreachable plugin: %v", err)
	}
	f.err = nil
	n.admitAndPrepare(p)
	n.expectDevices("one", "c", "a")
}

func TestRegistrationRejected(t *testing.T) {
	n := newNode(t)
	for name, c := range map[string]struct {
		q    *pluginapi.RegisterRequest
		want string
	}{
		"unsupported version": {&pluginapi.RegisterRequest{Version: "v1", ResourceName: gpu}, `requested API version "v1" is not supported by kubelet. Supported version is ["v1beta1"]`},
		"name without domain": {&pluginapi.RegisterRequest{Version: "v1beta1", ResourceName: "cpu"}, `the ResourceName "cpu" is invalid`},
		"name of Kubernetes":  {&pluginapi.RegisterRequest{Version: "v1beta1", ResourceName: "kubernetes.io/x"}, `the ResourceName "kubernetes.io/x" is invalid`},
	} {
		if err := n.register(c.q); status.Convert(err).Message() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if err := n.Validate(t.Context(), pluginreg.Plugin{Name: gpu, Versions: []string{"v9"}}); err == nil || !strings.Contains(err.Error(), "not among plugin supported versions") {
		t.Errorf("version through the folder: %v", err)
	}
	if err := n.Validate(t.Context(), pluginreg.Plugin{Name: "x", Versions: []string{"v1beta1"}}); err == nil {
		t.Error("a bad name through the folder is valid")
	}
}

// A plugin may register and deregister through the plugin registration directory.
func TestPluginRegistrationDirectory(t *testing.T) {
	n := newNode(t)
	f := n.serve("gpu.sock", nil)
	plugin := pluginreg.Plugin{Name: gpu, Endpoint: filepath.Join(n.dir, "gpu.sock"), Versions: []string{"v1beta1"}}
	if err := errors.Join(n.Validate(t.Context(), plugin), n.Register(t.Context(), plugin)); err != nil {
		t.Fatal(err)
	}
	n.list(f, device("a"))
	n.expectAmounts(1, 1)
	n.Deregister(plugin)
	<-n.changed
	n.expectAmounts(1, 0)
}

func TestOnlySocketsAreRemoved(t *testing.T) {
	n := newNode(t)
	n.stop()
	if err := os.WriteFile(filepath.Join(n.dir, "note"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(n.dir, "old.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	n.start()
	poll.Until(n, "nothing but the note and the new socket", func() bool {
		left, err := os.ReadDir(n.dir)
		return err == nil && len(left) == 2 && left[0].Name() == "kubelet.sock" && left[1].Name() == "note"
	})
}

func TestHints(t *testing.T) {
	n := newNode(t)
	n.join("gpu.sock", nil, device("a", 0), device("b", 0), device("c", 1), device("d"))
	node0, node1, both := numa.Nodes(1), numa.Nodes(2), numa.Nodes(3)
	p := podOf("one", requesting("c", 1))
	want := func(name string, got, want []numa.Hint) {
		t.Helper()
		if !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	k := []numa.Hint{{Nodes: node0, Preferred: true}, {Nodes: node1, Preferred: true}, {Nodes: both}}
	want("one", n.Hints(p, &p.Spec.Containers[0])[gpu], k)
	want("one by pod", n.PodHints(p)[gpu], k)
	two, three, five := requesting("c", 2), requesting("c", 3), requesting("c", 5)
	want("two", n.Hints(p, &two)[gpu], []numa.Hint{{Nodes: node0, Preferred: true}, {Nodes: both}})
	want("three", n.Hints(p, &three)[gpu], []numa.Hint{{Nodes: both, Preferred: true}})
	want("five", n.Hints(p, &five)[gpu], []numa.Hint{})

	if err := n.Allocate(t.Context(), p, &p.Spec.Containers[0], numa.Hint{Nodes: node1}); err != nil {
		t.Fatal(err)
	}
	n.admitAndPrepare(p)
	n.expectDevices("one", "c", "c")
	want("has one", n.Hints(p, &p.Spec.Containers[0])[gpu], []numa.Hint{{Nodes: node1, Preferred: true}, {Nodes: both}})
	other := podOf("two", requesting("c", 1))
	want("another", n.Hints(other, &other.Spec.Containers[0])[gpu], []numa.Hint{{Nodes: node0, Preferred: true}, {Nodes: both}})
}
