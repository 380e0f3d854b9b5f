package csi

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/kubeclient/kubeclienttest"
	"swiftlet/internal/pluginreg"
	"swiftlet/internal/volume/plugin"
)

const driverName = "disk.test"

// fakeDriver is a configurable driver on a real socket that records its requests.
type fakeDriver struct {
	csi.UnimplementedNodeServer
	socket string
	info   *csi.NodeGetInfoResponse
	caps   []csi.NodeServiceCapability_RPC_Type
	fail   error // of every call that changes something
	// unpublished is called with each unpublished path; may be nil.
	unpublished func(path string)

	mu       sync.Mutex
	requests []any
	// healthStatuses of every volume
	healthStatuses []*csi.VolumeHealth_VolumeHealthEntry
}

func newDriver(t *testing.T) *fakeDriver {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi") // short, for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &fakeDriver{
		socket: filepath.Join(dir, "s"),
		info:   &csi.NodeGetInfoResponse{NodeId: "id"},
		caps:   []csi.NodeServiceCapability_RPC_Type{canStage, canExpand, canMeasure},
	}
	listener, err := net.Listen("unix", d.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, r any, i *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return h(ctx, r)
	}))
	csi.RegisterNodeServer(server, d)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return d
}

func (d *fakeDriver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return d.info, nil
}

func (d *fakeDriver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	answer := &csi.NodeGetCapabilitiesResponse{}
	for _, t := range d.caps {
		answer.Capabilities = append(answer.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}}})
	}
	return answer, nil
}

func (d *fakeDriver) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	d.requests = append(d.requests, r)
	return &csi.NodeStageVolumeResponse{}, d.fail
}

func (d *fakeDriver) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	d.requests = append(d.requests, r)
	return &csi.NodeUnstageVolumeResponse{}, d.fail
}

func (d *fakeDriver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	d.requests = append(d.requests, r)
	if r.GetVolumeCapability().GetMount() != nil {
		if err := os.MkdirAll(r.GetTargetPath(), 0o750); err != nil {
			return nil, err
		}
	} else if err := os.WriteFile(r.GetTargetPath(), nil, 0o600); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, d.fail
}

func (d *fakeDriver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	d.requests = append(d.requests, r)
	if d.fail == nil {
		os.Remove(r.GetTargetPath())
		if d.unpublished != nil {
			d.unpublished(r.GetTargetPath())
		}
	}
	return &csi.NodeUnpublishVolumeResponse{}, d.fail
}

func (d *fakeDriver) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	d.requests = append(d.requests, r)
	return &csi.NodeExpandVolumeResponse{}, d.fail
}

func (d *fakeDriver) NodeGetVolumeStats(_ context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	d.requests = append(d.requests, r)
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: 100, Available: 70, Used: 30},
	}}, nil
}

func (d *fakeDriver) NodeGetVolumeHealth(_ context.Context, r *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	d.requests = append(d.requests, r)
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: &csi.VolumeHealth{HealthStatuses: d.healthStatuses}}, d.fail
}

// failWith makes the driver fail from now on, or work again.
func (d *fakeDriver) failWith(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

// take returns the requests since the last call.
func (d *fakeDriver) take() []any {
	d.mu.Lock()
	defer d.mu.Unlock()
	requests := d.requests
	d.requests = nil
	return requests
}

func (d *fakeDriver) plugin() pluginreg.Plugin {
	return pluginreg.Plugin{Type: "CSIPlugin", Name: driverName, Endpoint: d.socket, Versions: []string{"1.0.0"}}
}

// fixture is a node with the plugin and, if registered, the driver.
type fixture struct {
	*Plugin
	root   string
	client *fake.Clientset
	clock  *clocktesting.FakeClock
	// known is the CSIDriver object, nil for none.
	known *storagev1.CSIDriver
	// mounted are mount points.
	mounted map[string]bool
	// twins are the mount points of the same file system, by path.
	twins map[string][]string
}

func (f *fixture) Mounted(path string) (bool, error) { return f.mounted[path], nil }

func (f *fixture) SameFilesystemMounts(path, _ string) ([]string, error) { return f.twins[path], nil }

func (f *fixture) UnmountBeneath(dir string) error {
	f.mounted[dir] = false
	return nil
}

func (f *fixture) Get(_ context.Context, _, account string, r *authv1.TokenRequest) (kubeapi.Token, error) {
	return kubeapi.Token{Value: "token of " + account, ExpiresAt: time.Unix(2000, 0)}, nil
}

func (f *fixture) driver(_ context.Context, name string) (*storagev1.CSIDriver, error) {
	if f.known == nil {
		return nil, apierrors.NewNotFound(storagev1.Resource("csidrivers"), name)
	}
	return f.known, nil
}

func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node-uid", Labels: map[string]string{"zone": "a"}}}
	f := &fixture{
		root:    t.TempDir(),
		client:  fake.NewClientset(append(objects, node)...),
		clock:   clocktesting.NewFakeClock(time.Unix(1000, 0)),
		known:   &storagev1.CSIDriver{},
		mounted: map[string]bool{},
		twins:   map[string][]string{},
	}
	no := false
	f.known.Spec.AttachRequired = &no
	f.known.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	var err error
	f.Plugin, err = New(Config{RootDir: f.root, NodeName: "n"}, Deps{
		Client: kubeclienttest.Wrap(f.client), Drivers: f.driver, Tokens: f, Mounts: f, Clock: f.clock, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// register registers the driver with the plugin.
func (f *fixture) register(t *testing.T, d *fakeDriver) {
	t.Helper()
	if err := f.Register(t.Context(), d.plugin()); err != nil {
		t.Fatal(err)
	}
}

// request is a request for the volume pv of the pod p.
func (f *fixture) request(change ...func(*v1.PersistentVolume, *v1.Pod)) plugin.Request {
	pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: v1.PersistentVolumeSpec{
		AccessModes:            []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driverName, VolumeHandle: "handle", FSType: "ext4"}},
	}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "uid"}}
	for _, c := range change {
		c(pv, pod)
	}
	return plugin.Request{
		Spec:   plugin.Spec{Volume: &v1.Volume{Name: "v"}, PV: pv, PVC: &v1.PersistentVolumeClaim{}},
		Pod:    pod,
		PodDir: filepath.Join(f.root, "pods", "uid"),
	}
}

func asBlock(pv *v1.PersistentVolume, _ *v1.Pod) {
	mode := v1.PersistentVolumeBlock
	pv.Spec.VolumeMode = &mode
}

// published is the volume as found on disk.
func (f *fixture) published(block bool) plugin.Published {
	return plugin.Published{PodUID: "uid", PodDir: filepath.Join(f.root, "pods", "uid"), Name: "pv", Block: block}
}

// tree lists all files and empty directories below the root.
func (f *fixture) tree(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(f.root, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			entries, err := os.ReadDir(path)
			if err != nil || len(entries) > 0 {
				return err
			}
		}
		rel, err := filepath.Rel(f.root, path)
		all = append(all, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
