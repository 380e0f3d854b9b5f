package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"swiftlet/internal/volume/plugin"
	"swiftlet/test/poll"
)

// driver is a plugin with all optional interfaces. Its volumes are directories or, for raw block
// volumes, a loop device. It records its calls.
type driver struct {
	root   string
	device string // for raw volumes

	mu    sync.Mutex
	calls []string
	fails map[string]error // by call
}

const driverName = "test/driver"

func (d *driver) Name() string { return driverName }
func (d *driver) Handles(s plugin.Spec) bool {
	return s.PV != nil && s.PV.Spec.FlexVolume != nil
}

func (d *driver) record(call string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, call)
	return d.fails[strings.Fields(call)[0]]
}

func (d *driver) fail(call string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = map[string]error{call: err}
}

func (d *driver) called() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.calls, ", ")
}

func (d *driver) globalDir(id string) string { return filepath.Join(d.root, "plugins", driverName, id) }

func (d *driver) DeviceID(_ context.Context, s plugin.Spec) (string, error) {
	return s.PV.Spec.FlexVolume.Driver, nil
}

func (d *driver) Stage(_ context.Context, r plugin.Request) error {
	id := r.PV.Spec.FlexVolume.Driver
	return errors.Join(d.record("stage "+id), os.MkdirAll(d.globalDir(id), 0o750))
}

func (d *driver) SetUp(_ context.Context, r plugin.Request) (plugin.Result, error) {
	if err := d.record("publish " + string(r.Pod.UID)); err != nil {
		return plugin.Result{}, err
	}
	dir := r.VolumeDir(driverName)
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "mount"), 0o750),
		os.WriteFile(filepath.Join(dir, "device"), []byte(r.PV.Spec.FlexVolume.Driver), 0o600))
	return plugin.Result{HostPath: filepath.Join(dir, "mount")}, err
}

func (d *driver) MapDevice(_ context.Context, r plugin.Request) (plugin.Result, error) {
	return plugin.Result{HostPath: d.device}, d.record("map " + string(r.Pod.UID))
}

func (d *driver) MapDir(name string) string { return filepath.Join(d.globalDir("volumeDevices"), name) }

func (d *driver) DeviceOf(p plugin.Published) (string, error) {
	if p.Block {
		return "raw", nil
	}
	id, err := os.ReadFile(filepath.Join(p.Dir(driverName), "device"))
	return string(id), err
}

func (d *driver) TearDown(_ context.Context, p plugin.Published) error {
	if err := d.record("unpublish " + string(p.PodUID)); err != nil {
		return err
	}
	return os.RemoveAll(p.Dir(driverName))
}

func (d *driver) Staged() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(d.root, "plugins", driverName))
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return ids, err
}

func (d *driver) Unstage(_ context.Context, id string) error {
	if err := d.record("unstage " + id); err != nil {
		return err
	}
	return os.RemoveAll(d.globalDir(id))
}

// newDriver returns a node with a driver, and a claim of one of its volumes.
func newDriver(t *testing.T) (*node, *driver, v1.VolumeSource) {
	n := newNode(t)
	d := &driver{root: n.root}
	n.kinds = []plugin.Plugin{d}
	n.restart()
	return n, d, n.claimed(v1.PersistentVolumeSource{FlexVolume: &v1.FlexPersistentVolumeSource{Driver: "disk"}})
}

func (n *node) podNamed(uid string, source v1.VolumeSource) *v1.Pod {
	p := n.pod(source)
	p.UID = types.UID(uid)
	return p
}

func (n *node) unmount(uid types.UID) {
	n.t.Helper()
	if err := n.Unmount(n.t.Context(), uid); err != nil {
		n.t.Fatal(err)
	}
}

func TestDeviceIsStagedOnceAndUnstagedWithLastPod(t *testing.T) {
	n, d, source := newDriver(t)
	if got, want := n.mount(n.podNamed("a", source)), filepath.Join(n.root, "pods/a/volumes/test~driver/pv/mount"); got != want {
		t.Errorf("mounted at %s, want %s", got, want)
	}
	n.mount(n.podNamed("b", source))
	n.unmount("a")
	if want := "stage disk, publish a, publish b, unpublish a"; d.called() != want {
		t.Errorf("called: %s, want %s", d.called(), want)
	}
	n.unmount("b")
	poll.Until(t, "the device to be unstaged", func() bool { return strings.HasSuffix(d.called(), "unpublish b, unstage disk") })
}

// TestDeviceSurvivesRestart: the volumes of an earlier agent are found on disk.
func TestDeviceSurvivesRestart(t *testing.T) {
	n, d, source := newDriver(t)
	n.mount(n.podNamed("a", source))
	n.mount(n.podNamed("b", source))
	n.restart()
	if err := n.UnstageOrphans(); err != nil {
		t.Fatal(err)
	}
	n.unmount("a")
	n.restart() // ends the background unstage
	if strings.Contains(d.called(), "unstage") {
		t.Fatalf("unstaged while a pod uses it: %s", d.called())
	}
	n.unmount("b")
	poll.Until(t, "the device to be unstaged", func() bool { return strings.HasSuffix(d.called(), "unstage disk") })
}

func TestOrphanedDeviceIsUnstaged(t *testing.T) {
	n, d, source := newDriver(t)
	d.fail("publish", errors.New("killed between stage and publish"))
	ctx, cancel := context.WithCancel(t.Context())
	p := n.podNamed("a", source)
	done := make(chan struct{})
	go func() { _, _ = n.Mount(ctx, p); close(done) }()
	poll.Until(t, "the failure", func() bool { return n.events.has("killed between stage and publish") })
	cancel()
	<-done
	n.restart()
	if err := n.UnstageOrphans(); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the device to be unstaged", func() bool { return strings.HasSuffix(d.called(), "unstage disk") })
}

// TestUnstageIsRetried: Retry does not wait for the back-off.
func TestUnstageIsRetried(t *testing.T) {
	n, d, source := newDriver(t)
	n.clock = testclock.NewFakeClock(time.Now())
	n.restart()
	n.mount(n.podNamed("a", source))
	d.fail("unstage", errors.New("no driver"))
	n.unmount("a")
	poll.Until(t, "the failure", func() bool { return strings.HasSuffix(d.called(), "unstage disk") })
	d.fail("", nil)
	n.Retry()
	poll.Until(t, "the device to be unstaged", func() bool { return strings.HasSuffix(d.called(), "unstage disk, unstage disk") })
}

func TestFailedTearDownKeepsTheVolume(t *testing.T) {
	n, d, source := newDriver(t)
	dir := n.mount(n.podNamed("a", source))
	d.fail("unpublish", errors.New("no driver"))
	err := n.Unmount(t.Context(), "a")
	if want := `UnmountVolume.TearDown failed for volume "pv" of pod a: no driver`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("unmount: %v, want %s", err, want)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the volume was changed: %v", err)
	}
	if strings.Contains(d.called(), "unstage") {
		t.Errorf("unstaged before the volume was torn down: %s", d.called())
	}
	d.fail("", nil)
	n.unmount("a")
	poll.Until(t, "the device to be unstaged", func() bool { return strings.HasSuffix(d.called(), "unstage disk") })
}

func TestStageFailureIsRecorded(t *testing.T) {
	n, d, source := newDriver(t)
	n.cfg.MountTimeout = time.Second
	d.fail("stage", errors.New("no such disk"))
	if _, err := n.Mount(t.Context(), n.podNamed("a", source)); err == nil {
		t.Fatal("mounted")
	}
	if want := `FailedMount: MountVolume.MountDevice failed for volume "pv" : no such disk`; !n.events.has(want) {
		t.Errorf("events %q, want %s", n.events.recorded, want)
	}
}

func TestReadWriteOncePod(t *testing.T) {
	n := newNode(t)
	n.cfg.MountTimeout = 200 * time.Millisecond
	source := n.claimed(hostPathPV(t.TempDir()), func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
		pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
	})
	n.mount(n.podNamed("a", source))
	_, err := n.Mount(t.Context(), n.podNamed("b", source))
	if err == nil || !n.events.has(`MountVolume.SetUp failed for volume "pv" : volume uses the ReadWriteOncePod access mode and is already in use by another pod`) {
		t.Errorf("a second pod: %v, %q", err, n.events.recorded)
	}
	n.unmount("a")
	n.mount(n.podNamed("b", source))
}

func TestTwoVolumesWithOneClaim(t *testing.T) {
	n, d, source := newDriver(t)
	p := n.podNamed("a", source)
	p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "again", VolumeSource: source})
	p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: "again", MountPath: "/again"})
	got, err := n.Mount(t.Context(), p)
	if err != nil || got["vol"] != got["again"] || got["vol"].HostPath == "" {
		t.Errorf("mounted %+v, %v", got, err)
	}
	if strings.Count(d.called(), "stage disk") != 1 {
		t.Errorf("called: %s", d.called())
	}
	n.unmount("a")
	if all := strings.Split(d.called(), ", "); slices.Index(all, "unpublish a") < 0 {
		t.Errorf("called: %s", d.called())
	}
}
