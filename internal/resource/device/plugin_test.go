package device

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/test/poll"
)

const (
	// waitTimeout is how long a test waits for an event.
	waitTimeout = 30 * time.Second
	gpu         = "example.com/gpu"
)

// fakePlugin is a device plugin on a real socket.
type fakePlugin struct {
	pluginapi.UnimplementedDevicePluginServer
	options *pluginapi.DevicePluginOptions
	lists   chan []*pluginapi.Device
	server  *grpc.Server

	mu        sync.Mutex
	calls     []string
	err       error
	preferred []string
	available []string
	onPrefer  func()
}

func (f *fakePlugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return f.options, nil
}

func (f *fakePlugin) ListAndWatch(_ *pluginapi.Empty, s grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	for {
		select {
		case devices := <-f.lists:
			if err := s.Send(&pluginapi.ListAndWatchResponse{Devices: devices}); err != nil {
				return err
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

func (f *fakePlugin) note(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
	return f.err
}

func (f *fakePlugin) GetPreferredAllocation(_ context.Context, q *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	if f.onPrefer != nil {
		f.onPrefer()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.available = q.ContainerRequests[0].AvailableDeviceIDs
	return &pluginapi.PreferredAllocationResponse{ContainerResponses: []*pluginapi.ContainerPreferredAllocationResponse{{DeviceIDs: f.preferred}}}, f.err
}

func (f *fakePlugin) Allocate(_ context.Context, q *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	ids := q.ContainerRequests[0].DevicesIds
	response := &pluginapi.ContainerAllocateResponse{Envs: map[string]string{"IDS": join(ids)}}
	for _, id := range ids {
		response.Devices = append(response.Devices, &pluginapi.DeviceSpec{HostPath: "/dev/" + id, ContainerPath: "/dev/gpu-" + id, Permissions: "rw"})
	}
	return &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{response}}, f.note("allocate " + join(ids))
}

func (f *fakePlugin) PreStartContainer(_ context.Context, q *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	return &pluginapi.PreStartContainerResponse{}, f.note("prestart " + join(q.DevicesIds))
}

func join(ids []string) string {
	text := ""
	for i, id := range ids {
		if i > 0 {
			text += ","
		}
		text += id
	}
	return text
}

// node is a manager in a directory of its own, and its notifications.
type node struct {
	*testing.T
	dir   string
	clock *clocktesting.FakePassiveClock
	*Manager
	stop    func()
	events  chan string
	woken   chan types.UID
	changed chan struct{}
	running map[string]bool
	lone    bool
}

func newNode(t *testing.T) *node { return startNode(t, false) }

// newLoneNode returns a node without a scheduler.
func newLoneNode(t *testing.T) *node { return startNode(t, true) }

func startNode(t *testing.T, lone bool) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "dev") // short enough for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := &node{T: t, dir: filepath.Join(dir, "p"), clock: clocktesting.NewFakePassiveClock(time.Now()), running: map[string]bool{}, lone: lone}
	n.start()
	t.Cleanup(func() { n.stop() })
	return n
}

// start creates and running a manager; after stop, that is a restart of the agent.
func (n *node) start() {
	n.Helper()
	n.events, n.woken, n.changed = make(chan string, 100), make(chan types.UID, 100), make(chan struct{}, 100)
	changed, woken := n.changed, n.woken
	m, err := New(Config{Dir: n.dir, Nodes: 3, AwaitPlugins: n.lone}, Deps{
		Running: func(pod types.UID, container string) bool { return n.running[string(pod)+"/"+container] },
		Wake:    func(pod types.UID) { woken <- pod },
		Changed: func() { changed <- struct{}{} },
		Events:  n, Clock: n.clock, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		n.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	n.Manager = m
	n.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			n.Error(err)
		}
		ended <- nil
	}
	poll.Until(n, "the registration socket", func() bool { _, err := os.Stat(filepath.Join(n.dir, socketName)); return err == nil })
}

func (n *node) Eventf(_ apiruntime.Object, _, reason, format string, args ...any) {
	if n.lone {
		reason += ": " + fmt.Sprintf(format, args...)
	}
	n.events <- reason
}

// serve starts a plugin on a socket of the directory.
func (n *node) serve(name string, options *pluginapi.DevicePluginOptions) *fakePlugin {
	n.Helper()
	f := &fakePlugin{options: options, lists: make(chan []*pluginapi.Device, 10), server: grpc.NewServer()}
	if options == nil {
		f.options = &pluginapi.DevicePluginOptions{}
	}
	pluginapi.RegisterDevicePluginServer(f.server, f)
	path := filepath.Join(n.dir, name)
	os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		n.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	go f.server.Serve(listener)
	n.Cleanup(f.server.Stop)
	return f
}

// register registers a plugin on the socket.
func (n *node) register(q *pluginapi.RegisterRequest) error {
	n.Helper()
	conn, err := dial(filepath.Join(n.dir, socketName))
	if err != nil {
		n.Fatal(err)
	}
	defer conn.Close()
	_, err = pluginapi.NewRegistrationClient(conn).Register(n.Context(), q, grpc.WaitForReady(true))
	return err
}

// join starts and registers a plugin with these devices, and returns when the manager has them.
func (n *node) join(name string, options *pluginapi.DevicePluginOptions, devices ...*pluginapi.Device) *fakePlugin {
	n.Helper()
	f := n.serve(name, options)
	if err := n.register(&pluginapi.RegisterRequest{Version: "v1beta1", Endpoint: name, ResourceName: gpu}); err != nil {
		n.Fatal(err)
	}
	n.list(f, devices...)
	return f
}

func (n *node) list(f *fakePlugin, devices ...*pluginapi.Device) {
	n.Helper()
	f.lists <- devices
	select {
	case <-n.changed:
	case <-time.After(waitTimeout):
		n.Fatal("the manager reported no change")
	}
}

// leave stops a plugin, and returns when the manager has removed it.
func (n *node) leave(f *fakePlugin) {
	n.Helper()
	f.server.Stop()
	select {
	case <-n.changed:
	case <-time.After(waitTimeout):
		n.Fatal("the manager did not remove the plugin")
	}
}

// amounts returns capacity and allocatable of the resource, -1 where it is absent.
func (n *node) amounts() (capacity, allocatable int64) {
	all := n.Amounts()
	value := func(list v1.ResourceList) int64 {
		if q, ok := list[gpu]; ok {
			return q.Value()
		}
		return -1
	}
	return value(all.Capacity), value(all.Allocatable)
}

func (n *node) expectAmounts(capacity, allocatable int64) {
	n.Helper()
	if c, a := n.amounts(); c != capacity || a != allocatable {
		n.Errorf("capacity %d and allocatable %d, want %d and %d", c, a, capacity, allocatable)
	}
}

func device(id string, nodes ...int64) *pluginapi.Device {
	d := &pluginapi.Device{ID: id, Health: pluginapi.Healthy}
	if len(nodes) > 0 {
		d.Topology = &pluginapi.TopologyInfo{}
	}
	for _, n := range nodes {
		d.Topology.Nodes = append(d.Topology.Nodes, &pluginapi.NUMANode{ID: n})
	}
	return d
}

func unhealthy(id string) *pluginapi.Device {
	return &pluginapi.Device{ID: id, Health: pluginapi.Unhealthy}
}

// requesting returns a container that requests devices.
func requesting(name string, count int64) v1.Container {
	return v1.Container{Name: name, Resources: v1.ResourceRequirements{
		Limits: v1.ResourceList{gpu: *resource.NewQuantity(count, resource.DecimalSI), v1.ResourceCPU: resource.MustParse("1")},
	}}
}

func podOf(uid string, containers ...v1.Container) *v1.Pod {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: containers}}
	p.UID, p.Name, p.Namespace = types.UID(uid), uid, "ns"
	return p
}
