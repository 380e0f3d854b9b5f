package volume

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/kubeclient/kubeclienttest"
	"swiftlet/internal/pluginreg"
	"swiftlet/internal/volume/csi"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/plugin"
	"swiftlet/test/poll"
)

// mountingDriver is a CSI driver on a real socket whose volumes are tmpfs mounts.
type mountingDriver struct {
	csispec.UnimplementedNodeServer
	socket string

	mu    sync.Mutex
	calls []string
}

func (d *mountingDriver) called(call string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, call)
}

func (d *mountingDriver) has(call string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.calls, call)
}

func (d *mountingDriver) NodeGetInfo(context.Context, *csispec.NodeGetInfoRequest) (*csispec.NodeGetInfoResponse, error) {
	return &csispec.NodeGetInfoResponse{NodeId: "here"}, nil
}

func (d *mountingDriver) NodeGetCapabilities(context.Context, *csispec.NodeGetCapabilitiesRequest) (*csispec.NodeGetCapabilitiesResponse, error) {
	return &csispec.NodeGetCapabilitiesResponse{Capabilities: []*csispec.NodeServiceCapability{{Type: &csispec.NodeServiceCapability_Rpc{
		Rpc: &csispec.NodeServiceCapability_RPC{Type: csispec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}}}}}, nil
}

func (d *mountingDriver) NodeStageVolume(_ context.Context, r *csispec.NodeStageVolumeRequest) (*csispec.NodeStageVolumeResponse, error) {
	if mounted, err := (&mounts.Kernel{}).Mounted(r.StagingTargetPath); err != nil || mounted {
		return &csispec.NodeStageVolumeResponse{}, err
	}
	d.called("stage " + r.VolumeId)
	return &csispec.NodeStageVolumeResponse{}, unix.Mount("tmpfs", r.StagingTargetPath, "tmpfs", 0, "size=64k")
}

func (d *mountingDriver) NodePublishVolume(_ context.Context, r *csispec.NodePublishVolumeRequest) (*csispec.NodePublishVolumeResponse, error) {
	if mounted, err := (&mounts.Kernel{}).Mounted(r.TargetPath); err != nil || mounted {
		return &csispec.NodePublishVolumeResponse{}, err
	}
	d.called("publish " + r.VolumeId)
	if err := os.MkdirAll(r.TargetPath, 0o750); err != nil {
		return nil, err
	}
	return &csispec.NodePublishVolumeResponse{}, unix.Mount(r.StagingTargetPath, r.TargetPath, "", unix.MS_BIND, "")
}

func (d *mountingDriver) NodeUnpublishVolume(_ context.Context, r *csispec.NodeUnpublishVolumeRequest) (*csispec.NodeUnpublishVolumeResponse, error) {
	d.called("unpublish " + r.VolumeId)
	return &csispec.NodeUnpublishVolumeResponse{}, (&mounts.Kernel{}).Unmount(r.TargetPath)
}

func (d *mountingDriver) NodeUnstageVolume(_ context.Context, r *csispec.NodeUnstageVolumeRequest) (*csispec.NodeUnstageVolumeResponse, error) {
	d.called("unstage " + r.VolumeId)
	return &csispec.NodeUnstageVolumeResponse{}, (&mounts.Kernel{}).Unmount(r.StagingTargetPath)
}

func newMountingDriver(t *testing.T) *mountingDriver {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi") // short, for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &mountingDriver{socket: filepath.Join(dir, "s")}
	listener, err := net.Listen("unix", d.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csispec.RegisterNodeServer(server, d)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return d
}

// csiNode is a node with the driver. restartCSI starts a new agent.
type csiNode struct {
	*node
	driver *mountingDriver
	log    *logged
}

// logged collects the log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func newCSINode(t *testing.T) *csiNode {
	n := &csiNode{node: newNode(t), driver: newMountingDriver(t), log: &logged{}}
	n.restartCSI()
	return n
}

func (n *csiNode) Get(context.Context, string, string, *authv1.TokenRequest) (kubeapi.Token, error) {
	return kubeapi.Token{}, nil
}

func (n *csiNode) restartCSI() {
	n.t.Helper()
	known := &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false),
		VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}}}
	_, err := n.client.CoreV1().Nodes().Create(context.Background(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "here", UID: "node-uid"}}, metav1.CreateOptions{})
	if err != nil && !strings.Contains(err.Error(), "already exists") {
		n.t.Fatal(err)
	}
	p, err := csi.New(csi.Config{RootDir: n.root, NodeName: "here"}, csi.Deps{
		Client: kubeclienttest.Wrap(n.client), Tokens: n, Mounts: &mounts.Kernel{}, Clock: clock.RealClock{}, Log: slog.New(slog.NewTextHandler(n.log, nil)),
		Drivers: func(context.Context, string) (*storagev1.CSIDriver, error) { return known, nil },
	})
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := p.Register(ctx, pluginreg.Plugin{Type: "CSIPlugin", Name: "disk.test", Endpoint: n.driver.socket, Versions: []string{"1.0.0"}}); err != nil {
		n.t.Fatal(err)
	}
	n.kinds = []plugin.Plugin{p}
	n.restart()
}

// csiPod is a pod with a volume of the driver, both with this name.
func (n *csiNode) csiPod(name string) *v1.Pod {
	n.claimed(v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "disk.test", VolumeHandle: name}},
		func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
			c.Name, c.Spec.VolumeName, pv.Name = name, name, name
		})
	return n.podNamed(name, v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
}

func (n *csiNode) volumeDataPath(pod string) string {
	return filepath.Join(n.root, "pods", pod, "volumes/kubernetes.io~csi", pod, "vol_data.json")
}

// damages corrupt a file in different ways.
var damages = map[string]func(path string) error{
	"not JSON":   func(path string) error { return os.WriteFile(path, []byte("garbage"), 0o600) },
	"empty file": func(path string) error { return os.Truncate(path, 0) },
	"truncated":  func(path string) error { return os.Truncate(path, 20) },
	"all zeros":  func(path string) error { return os.WriteFile(path, make([]byte, 200), 0o600) },
	"other JSON": func(path string) error { return os.WriteFile(path, []byte(`{"hello":"world"}`), 0o600) },
	"directory": func(path string) error {
		if err := os.Remove(path); err != nil {
			return err
		}
		return os.MkdirAll(filepath.Join(path, "inside"), 0o700)
	},
}

// TestUnreadableVolumeDataAffectsOneVolume: volumes of other pods are unstaged; this one is not unstaged
// while its pod exists, and is torn down with the pod.
func TestUnreadableVolumeDataAffectsOneVolume(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			n := newCSINode(t)
			n.mount(n.csiPod("broken"))
			n.mount(n.csiPod("whole"))
			if err := damage(n.volumeDataPath("broken")); err != nil {
				t.Fatal(err)
			}
			n.restartCSI()
			n.unmount("whole")
			poll.Until(t, "the other volume to be unstaged", func() bool { return n.driver.has("unstage whole") })
			if err := n.UnstageOrphans(); err != nil {
				t.Error("unstage orphans:", err)
			}
			n.unmount("broken")
			poll.Until(t, "its own volume to be unstaged", func() bool { return n.driver.has("unstage broken") })
			if !n.driver.has("unpublish broken") {
				t.Errorf("NodeUnpublishVolume was not called: %v", n.driver.calls)
			}
			if i, j := slices.Index(n.driver.calls, "unpublish broken"), slices.Index(n.driver.calls, "unstage broken"); i > j {
				t.Errorf("unstaged before it was unpublished: %v", n.driver.calls)
			}
			poll.Until(t, "nothing to be left", func() bool { return len(n.leftOf(t)) == 0 })
			if lines := n.log.count("path=" + n.volumeDataPath("broken")); lines != 1 {
				t.Errorf("the log has the file %d times, want 1:\n%s", lines, n.log.text.String())
			}
		})
	}
}

// leftOf lists the mount points and directories of volumes.
func (n *csiNode) leftOf(t *testing.T) []string {
	t.Helper()
	left, err := (&mounts.Kernel{}).MountPoints(n.root)
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"pods/*/volumes/kubernetes.io~csi/*", "plugins/kubernetes.io/csi/disk.test/*"} {
		found, err := filepath.Glob(filepath.Join(n.root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, found...)
	}
	return left
}

// TestUnreadableVolumeDataOfStagedVolume: without the handle the driver cannot be called. The volume is
// unmounted and removed nevertheless.
func TestUnreadableVolumeDataOfStagedVolume(t *testing.T) {
	n := newCSINode(t)
	n.mount(n.csiPod("broken"))
	files, err := filepath.Glob(filepath.Join(n.root, "plugins/kubernetes.io/csi/disk.test/*/vol_data.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("volume data files are %v %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.restartCSI()
	n.unmount("broken")
	poll.Until(t, "nothing to be left", func() bool { return len(n.leftOf(t)) == 0 })
	if n.log.count(files[0]) == 0 {
		t.Errorf("the log does not have the file:\n%s", n.log.text.String())
	}
}

// TestUnreadableVolumeDataIsWrittenAgain when the pod is mounted again.
func TestUnreadableVolumeDataIsWrittenAgain(t *testing.T) {
	n := newCSINode(t)
	n.mount(n.csiPod("broken"))
	want, err := os.ReadFile(n.volumeDataPath("broken"))
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(n.root, "plugins/kubernetes.io/csi/disk.test/*/vol_data.json"))
	for _, path := range append(files, n.volumeDataPath("broken")) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n.restartCSI()
	n.mount(n.podNamed("broken", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "broken"}}))
	if got, err := os.ReadFile(n.volumeDataPath("broken")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the volume data is %q (%v), want %q", got, err, want)
	}
	n.unmount(types.UID("broken"))
	poll.Until(t, "the volume to be unstaged", func() bool { return n.driver.has("unstage broken") })
}

// TestUnknownDeviceBlocksUnstage: the staged volumes are not mount points, so the volume of a pod with
// unreadable volume data is unknown. None is unstaged until that pod is unmounted.
func TestUnknownDeviceBlocksUnstage(t *testing.T) {
	n := newCSINode(t)
	n.mount(n.csiPod("broken"))
	n.mount(n.csiPod("whole"))
	staged, err := filepath.Glob(filepath.Join(n.root, "plugins/kubernetes.io/csi/disk.test/*/globalmount"))
	if err != nil || len(staged) != 2 {
		t.Fatalf("staged at %v %v", staged, err)
	}
	for _, path := range staged {
		if err := unix.Unmount(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(n.volumeDataPath("broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.restartCSI()
	n.unmount("whole")
	if err := n.UnstageOrphans(); err == nil || !strings.Contains(err.Error(), "pod broken") {
		t.Errorf("got %v, want an error with the pod", err)
	}
	n.restartCSI() // ends the background unstage
	if n.driver.has("unstage broken") || n.driver.has("unstage whole") {
		t.Errorf("unstaged while a pod may use it: %v", n.driver.calls)
	}
	n.unmount("broken")
	poll.Until(t, "both to be unstaged", func() bool { return n.driver.has("unstage broken") && n.driver.has("unstage whole") })
	poll.Until(t, "nothing to be left", func() bool { return len(n.leftOf(t)) == 0 })
}
