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

// admit sets the pod's devices aside, container by container.
func (n *node) admit(p *v1.Pod) error {
	for c := range inOrder(p) {
		if err := n.Allocate(n.Context(), p, c, numa.Hint{}); err != nil {
			return err
		}
	}
	return nil
}

// bring admits a pod and has its devices prepared.
func (n *node) bring(p *v1.Pod) {
	n.Helper()
	if err := n.admit(p); err != nil {
		n.Fatal(err)
	}
	if err := n.Prepare(n.Context(), p, &pod.Observed{}); err != nil {
		n.Fatal(err)
	}
}

// has are the devices of a container.
func (n *node) has(uid, container string) string {
	var ids []string
	for _, d := range n.Devices(types.UID(uid), container) {
		ids = append(ids, d.DeviceIds...)
	}
	return join(ids)
}

func (n *node) wantHas(uid, container, want string) {
	n.Helper()
	if got := n.has(uid, container); got != want {
		n.Errorf("container %s of pod %s has %q, want %q", container, uid, got, want)
	}
}

func wantRefusal(t *testing.T, err error, want string) {
	t.Helper()
	var r *pod.Rejection
	if !errors.As(err, &r) {
		t.Fatalf("%v is no refusal", err)
	}
	if r.Reason != "UnexpectedAdmissionError" || r.Message != want {
		t.Errorf("refused with %s: %q, want %q", r.Reason, r.Message, want)
	}
}

func TestLife(t *testing.T) {
	n := newNode(t)
	f := n.join("gpu.sock", &pluginapi.DevicePluginOptions{PreStartRequired: true}, device("a"), device("b", 0, 1), sick("c"))
	n.wantAmounts(3, 2)
	p := podOf("one", asking("c", 2), v1.Container{Name: "without"})
	n.bring(p)
	n.wantHas("one", "c", "a,b,b") // b is on two NUMA nodes
	n.wantHas("one", "without", "")

	opts, err := n.Options(t.Context(), p, &p.Spec.Containers[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(opts.Envs) != 1 || string(opts.Envs[0].Value) != "a,b" || len(opts.Devices) != 2 || opts.Devices[1].ContainerPath != "/dev/gpu-b" {
		t.Errorf("options are %+v", opts)
	}
	if want := []string{"allocate a,b", "prestart a,b"}; !slices.Equal(f.calls, want) {
		t.Errorf("plugin was asked %q, want %q", f.calls, want)
	}
	err = n.admit(podOf("two", asking("c", 1)))
	if want := "requested number of devices unavailable for example.com/gpu. Requested: 1, Available: 0"; err == nil || err.Error() != want {
		t.Errorf("one too many: %v, want %s", err, want)
	}
	n.Release("two")
	n.Release("one")
	n.bring(podOf("three", asking("c", 1)))
	n.wantHas("three", "c", "a")
}

// TestInitContainers: what ends before another begins passes its devices on.
func TestInitContainers(t *testing.T) {
	n := newNode(t)
	n.join("gpu.sock", nil, device("a"), device("b"), device("c"))
	always := v1.ContainerRestartPolicyAlways
	first, side := asking("first", 2), asking("side", 1)
	side.RestartPolicy = &always
	p := podOf("one", asking("main", 2))
	p.Spec.InitContainers = []v1.Container{first, side}
	n.bring(p)
	n.wantHas("one", "first", "a,b")
	n.wantHas("one", "side", "a")
	n.wantHas("one", "main", "b,c")
}

func TestHealth(t *testing.T) {
	n := newNode(t)
	f := n.join("gpu.sock", nil, device("a"), device("b"))
	n.bring(podOf("one", asking("c", 1)))
	n.tell(f, sick("a"), device("b"))
	if got := <-n.woken; got != "one" {
		t.Errorf("%s was woken", got)
	}
	n.wantAmounts(2, 1)
	health := n.Health("one", "c")
	if len(health) != 1 || health[0].Name != gpu || health[0].Resources[0] != (v1.ResourceHealth{ResourceID: "a", Health: v1.ResourceHealthStatusUnhealthy}) {
		t.Errorf("health is %+v", health)
	}
	n.tell(f, device("a"), device("b"))
	<-n.woken
	if health := n.Health("one", "c"); health[0].Resources[0].Health != v1.ResourceHealthStatusHealthy {
		t.Errorf("health is %+v", health)
	}
	if len(n.AllocatableDevices()) != 2 {
		t.Errorf("allocatable: %v", n.AllocatableDevices())
	}
}

// TestPluginLeaves: its devices stay the node's for a while, and pods wait for it.
func TestPluginLeaves(t *testing.T) {
	n := newNode(t)
	f := n.join("gpu.sock", nil, device("a"), device("b"))
	n.leave(f)
	n.wantAmounts(2, 0)
	p := podOf("one", asking("c", 1))
	if err := n.admit(p); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := n.Prepare(t.Context(), p, &pod.Observed{}); !errors.Is(err, errPasses) {
			t.Fatalf("prepared without a plugin: %v", err)
		}
	}
	if len(n.events) != 1 || <-n.events != "WaitingForDevicePlugin" {
		t.Error("the user is not told once")
	}
	n.join("gpu.sock", nil, device("a"), device("b"))
	if got := <-n.woken; got != "one" {
		t.Errorf("%s was woken", got)
	}
	n.bring(p)
	n.wantHas("one", "c", "a")
}

func TestPluginLeavesForGood(t *testing.T) {
	n := newNode(t)
	n.leave(n.join("gpu.sock", nil, device("a")))
	p := podOf("one", asking("c", 1))
	if err := n.admit(p); err != nil {
		t.Fatal(err)
	}
	_ = n.Prepare(t.Context(), p, &pod.Observed{})
	n.clock.SetTime(n.clock.Now().Add(grace + time.Second))
	// With no pod that has any of it, the resource is none of ours and Fit says so.
	if n.wantAmounts(-1, -1); n.Gives(gpu) || !slices.Equal(n.Amounts().Removed, []v1.ResourceName{gpu}) {
		t.Errorf("the resource is still there: %+v", n.Amounts())
	}
	n.join("gpu.sock", nil, device("a"))
	if n.wantAmounts(1, 1); len(n.Amounts().Removed) != 0 {
		t.Error("it came back and is removed")
	}
}

// TestTwoPlugins: while a plugin is replaced, the newer one counts, and if it fails the older.
func TestTwoPlugins(t *testing.T) {
	n := newNode(t)
	old := n.join("old.sock", nil, device("a"))
	newer := n.join("new.sock", nil, device("a"), device("b"))
	n.wantAmounts(2, 2)
	old.lists <- []*pluginapi.Device{sick("a")} // is not heard
	n.leave(newer)
	poll.Until(n, "the old one's list", func() bool { c, a := n.amounts(); return c == 1 && a == 0 })
	n.join("old.sock", nil, device("x"), device("y"), device("z")) // the same socket anew
	poll.Until(n, "the new list", func() bool { c, a := n.amounts(); return c == 3 && a == 3 })
}

// TestRestart: the agent is restarted, with its plugin and without.
func TestRestart(t *testing.T) {
	n := newNode(t)
	f := n.join("gpu.sock", nil, device("a"), device("b"))
	p := podOf("one", asking("c", 1))
	n.bring(p)
	n.stop()
	if _, err := os.Stat(filepath.Join(n.dir, "gpu.sock")); err != nil {
		t.Fatal("the plugin's socket is gone before the next agent came")
	}
	n.runs["one/c"] = true
	n.start()
	if _, err := os.Stat(filepath.Join(n.dir, "gpu.sock")); err == nil {
		t.Error("the plugin's socket is still there")
	}
	n.wantAmounts(0, 0)
	n.wantHas("one", "c", "a")
	// It runs: it is let in, and what starts beside it is not held up.
	if err := n.admit(p); err != nil {
		t.Error(err)
	}
	observed := &pod.Observed{Containers: []pod.Container{{Name: "c", State: pod.Running}}}
	if err := n.Prepare(t.Context(), p, observed); err != nil {
		t.Error(err)
	}
	f.server.Stop()
	n.join("gpu.sock", nil, device("a"), device("b"))
	n.wantAmounts(2, 2)
	n.bring(podOf("two", asking("c", 1)))
	n.wantHas("two", "c", "b")
}

// TestReboot: nothing runs, the plugin is not there yet, then is, with the device or without.
func TestReboot(t *testing.T) {
	for name, c := range map[string]struct {
		devices []*pluginapi.Device
		late    bool
		want    string
	}{
		"device is there":    {devices: []*pluginapi.Device{device("a"), device("b")}},
		"device is sick":     {devices: []*pluginapi.Device{sick("a"), device("b")}, want: "Allocate failed due to previously allocated devices are no longer healthy; cannot allocate unhealthy devices example.com/gpu, which is unexpected"},
		"no device at all":   {devices: []*pluginapi.Device{}, want: "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices example.com/gpu, which is unexpected"},
		"plugin stayed away": {late: true, want: "Allocate failed due to cannot allocate unregistered device example.com/gpu, which is unexpected"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			f := n.join("gpu.sock", nil, device("a"), device("b"))
			p := podOf("one", asking("c", 1))
			n.bring(p)
			n.stop()
			f.server.Stop()
			n.start()
			if err := n.admit(p); err != nil {
				t.Fatal(err)
			}
			if err := n.Prepare(t.Context(), p, &pod.Observed{}); !errors.Is(err, errPasses) {
				t.Fatalf("prepared without a plugin: %v", err)
			}
			if c.late {
				n.clock.SetTime(n.clock.Now().Add(grace + time.Second))
			} else {
				n.join("gpu.sock", nil, c.devices...)
			}
			err := n.Prepare(t.Context(), p, &pod.Observed{})
			if c.want != "" {
				wantRefusal(t, err, c.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			n.wantHas("one", "c", "a")
		})
	}
}

// TestRunsWithoutRecord: a container that runs is not sent away because nobody knows what it
// was given.
func TestRunsWithoutRecord(t *testing.T) {
	n := newNode(t)
	n.join("gpu.sock", nil)
	n.runs["one/c"] = true
	if err := n.admit(podOf("one", asking("c", 1))); err != nil {
		t.Error(err)
	}
}

func TestRetain(t *testing.T) {
	n := newNode(t)
	n.join("gpu.sock", nil, device("a"))
	n.bring(podOf("one", asking("c", 1)))
	n.Retain(func(uid types.UID) bool { return uid == "one" })
	n.wantHas("one", "c", "a")
	n.Retain(func(types.UID) bool { return false })
	n.stop()
	n.start()
	n.wantHas("one", "c", "")
}

func TestBadCheckpoint(t *testing.T) {
	n := newNode(t)
	n.join("gpu.sock", nil, device("a"))
	n.bring(podOf("one", asking("c", 1)))
	n.stop()
	if err := os.WriteFile(n.path(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.start()
	if _, err := os.Stat(n.path() + ".bad"); err != nil {
		t.Error("the bad file is not put aside:", err)
	}
}

func TestChangedRequest(t *testing.T) {
	n := newNode(t)
	n.join("gpu.sock", nil, device("a"), device("b"))
	n.bring(podOf("one", asking("c", 1)))
	err := n.admit(podOf("one", asking("c", 2)))
	if want := `pod "one" container "c" changed request for resource "example.com/gpu" from 1 to 2`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestPreferred(t *testing.T) {
	n := newNode(t)
	f := n.join("gpu.sock", &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true}, device("a"), device("b"), device("c"))
	f.preferred = []string{"c"}
	n.bring(podOf("one", asking("c", 1)))
	n.wantHas("one", "c", "c")
	// While the plugin thinks, another pod takes what it will name.
	f.preferred = []string{"b"}
	f.onPrefer = func() {
		f.onPrefer = nil
		if err := n.admit(podOf("quick", asking("c", 1))); err != nil {
			t.Error(err)
		}
	}
	n.bring(podOf("two", asking("c", 1)))
	n.wantHas("two", "c", "a")
	n.wantHas("quick", "c", "b")
}

func TestPluginRefuses(t *testing.T) {
	n := newNode(t)
	f := n.join("gpu.sock", nil, device("a"))
	f.err = status.Error(codes.Unknown, "burnt")
	p := podOf("one", asking("c", 1))
	if err := n.admit(p); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, n.Prepare(t.Context(), p, &pod.Observed{}), "Allocate failed due to rpc error: code = Unknown desc = burnt, which is unexpected")
	f.err = status.Error(codes.Unavailable, "not now")
	if err := n.Prepare(t.Context(), p, &pod.Observed{}); !errors.Is(err, errPasses) {
		t.Errorf("a plugin that cannot be reached: %v", err)
	}
	f.err = nil
	n.bring(p)
	n.wantHas("one", "c", "a")
}

func TestRegistrationRefused(t *testing.T) {
	n := newNode(t)
	for name, c := range map[string]struct {
		q    *pluginapi.RegisterRequest
		want string
	}{
		"version": {&pluginapi.RegisterRequest{Version: "v1", ResourceName: gpu}, `requested API version "v1" is not supported by kubelet. Supported version is ["v1beta1"]`},
		"name":    {&pluginapi.RegisterRequest{Version: "v1beta1", ResourceName: "cpu"}, `the ResourceName "cpu" is invalid`},
		"native":  {&pluginapi.RegisterRequest{Version: "v1beta1", ResourceName: "kubernetes.io/x"}, `the ResourceName "kubernetes.io/x" is invalid`},
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

// TestRegistryFolder: a plugin that came through the folder of all plugins, and went.
func TestRegistryFolder(t *testing.T) {
	n := newNode(t)
	f := n.serve("gpu.sock", nil)
	plugin := pluginreg.Plugin{Name: gpu, Endpoint: filepath.Join(n.dir, "gpu.sock"), Versions: []string{"v1beta1"}}
	if err := errors.Join(n.Validate(t.Context(), plugin), n.Register(t.Context(), plugin)); err != nil {
		t.Fatal(err)
	}
	n.tell(f, device("a"))
	n.wantAmounts(1, 1)
	n.Deregister(plugin)
	<-n.moved
	n.wantAmounts(1, 0)
}

func TestCleanKeepsFiles(t *testing.T) {
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
	p := podOf("one", asking("c", 1))
	want := func(name string, got, want []numa.Hint) {
		t.Helper()
		if !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	one := []numa.Hint{{Nodes: node0, Preferred: true}, {Nodes: node1, Preferred: true}, {Nodes: both}}
	want("one", n.Hints(p, &p.Spec.Containers[0])[gpu], one)
	want("one by pod", n.PodHints(p)[gpu], one)
	two, three, five := asking("c", 2), asking("c", 3), asking("c", 5)
	want("two", n.Hints(p, &two)[gpu], []numa.Hint{{Nodes: node0, Preferred: true}, {Nodes: both}})
	want("three", n.Hints(p, &three)[gpu], []numa.Hint{{Nodes: both, Preferred: true}})
	want("five", n.Hints(p, &five)[gpu], []numa.Hint{})

	if err := n.Allocate(t.Context(), p, &p.Spec.Containers[0], numa.Hint{Nodes: node1}); err != nil {
		t.Fatal(err)
	}
	n.bring(p)
	n.wantHas("one", "c", "c")
	want("has one", n.Hints(p, &p.Spec.Containers[0])[gpu], []numa.Hint{{Nodes: node1, Preferred: true}, {Nodes: both}})
	other := podOf("two", asking("c", 1))
	want("another", n.Hints(other, &other.Spec.Containers[0])[gpu], []numa.Hint{{Nodes: node0, Preferred: true}, {Nodes: both}})
}
