package csi

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/why"
)

const (
	csiRoot = "plugins/kubernetes.io/csi/"
)

func TestUnregisteredDriver(t *testing.T) {
	f := newFixture(t)
	const missing = "driver name disk.test not found in the list of registered CSI drivers"
	if err := f.Stage(t.Context(), f.request()); err == nil || err.Error() != "kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: "+missing {
		t.Errorf("Stage: %v", err)
	}
	if _, err := f.SetUp(t.Context(), f.request()); err == nil || err.Error() != "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: "+missing {
		t.Errorf("SetUp: %v", err)
	}
	if _, err := f.MapDevice(t.Context(), f.request(asBlock)); err == nil || err.Error() != "kubernetes.io/csi: blockMapper.MapPodDevice failed to get CSI client: "+missing {
		t.Errorf("MapDevice: %v", err)
	}
	_, err := f.SetUp(t.Context(), f.request())
	for _, err := range []error{err, f.Stage(t.Context(), f.request())} {
		if class, driver := why.Of(err); class != why.DriverNotRegistered || driver != "disk.test" {
			t.Errorf("class %q of driver %q, want %q", class, driver, why.DriverNotRegistered)
		}
	}
	if left := f.tree(t); len(left) != 1 || left[0] != "." {
		t.Errorf("left behind: %v", left)
	}
}

// A final failure leaves nothing; after any other the call may be in progress and is undone.
func TestFailedStage(t *testing.T) {
	for _, block := range []bool{false, true} {
		for code, stays := range map[codes.Code]bool{
			codes.Internal: false, codes.InvalidArgument: false, codes.NotFound: false, codes.Unknown: false,
			codes.Aborted: true, codes.DeadlineExceeded: true, codes.Unavailable: true, codes.Canceled: true, codes.ResourceExhausted: true,
		} {
			f, d := newFixture(t), newDriver(t)
			f.register(t, d)
			d.failWith(status.Error(code, "no"))
			r := f.request()
			if block {
				r = f.request(asBlock)
			}
			if err := f.Stage(t.Context(), r); status.Code(unwrapFirst(err)) != code {
				t.Errorf("%v: %v", code, err)
			}
			staged, err := f.Staged()
			if err != nil {
				t.Fatal(err)
			}
			if stays != (len(staged) == 1) {
				t.Errorf("block %v, %v: staged is %v", block, code, f.tree(t))
			}
			if !stays {
				continue
			}
			d.failWith(nil)
			d.take()
			if err := f.Unstage(t.Context(), staged[0]); err != nil {
				t.Errorf("%v: unstage: %v", code, err)
			}
			if requests := d.take(); len(requests) != 1 || requests[0].(*csi.NodeUnstageVolumeRequest).VolumeId != "handle" {
				t.Errorf("%v: calls of the driver: %v", code, requests)
			}
			if staged, err := f.Staged(); err != nil || len(staged) > 0 {
				t.Errorf("%v: still staged: %v %v", code, f.tree(t), err)
			}
		}
	}
}

// unwrapFirst finds the driver's own error.
func unwrapFirst(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()[0]
	}
	return err
}

func TestStageFilesOnDisk(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.register(t, d)
	if err := f.Stage(t.Context(), f.request()); err != nil {
		t.Fatal(err)
	}
	if err := f.Stage(t.Context(), f.request(asBlock)); err != nil {
		t.Fatal(err)
	}
	mounted, err := f.DeviceID(t.Context(), f.request().Spec)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(strings.TrimPrefix(mounted, Name+"/"))
	want := []string{
		csiRoot + dir + "/globalmount",
		csiRoot + dir + "/vol_data.json",
		csiRoot + "volumeDevices/pv/data/vol_data.json",
		csiRoot + "volumeDevices/staging/pv",
	}
	if got := f.tree(t); !slices.Equal(got, want) {
		t.Errorf("on disk is\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	volumeData, err := os.ReadFile(filepath.Join(f.root, csiRoot, "volumeDevices/pv/data/vol_data.json"))
	if want := `{"attachmentID":"` + attachmentName("handle", driverName, "n") + `","driverName":"disk.test","nodeName":"n","specVolID":"pv","volumeHandle":"handle"}` + "\n"; string(volumeData) != want {
		t.Errorf("the volume data is %s (%v), want %s", volumeData, err, want)
	}
}

// Volumes that a crash or an earlier agent has left are found and unstaged.
func TestUnstageLeftovers(t *testing.T) {
	f := newFixture(t) // without a driver: none must be needed
	for _, dir := range []string{csiRoot + "disk.test/abc/globalmount", csiRoot + "disk.test/def", csiRoot + "volumeDevices/raw/data"} {
		if err := os.MkdirAll(filepath.Join(f.root, dir), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	staged, err := f.Staged()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{Name + "/disk.test/abc/globalmount", Name + "/disk.test/def/globalmount", Name + "/volumeDevices/staging/raw"}
	if !slices.Equal(staged, want) {
		t.Fatalf("staged is %v", staged)
	}
	for _, id := range staged {
		if err := f.Unstage(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if staged, err := f.Staged(); err != nil || len(staged) > 0 {
		t.Errorf("left: %v %v", staged, err)
	}
}

// A device that was published when the agent was killed, before the link in the pod's directory was
// created, is unpublished with the volume.
func TestUnstageAfterInterruptedPublish(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.register(t, d)
	r := f.request(asBlock)
	if err := f.Stage(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	got, err := f.MapDevice(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	d.take()
	if err := f.Unstage(t.Context(), rawID("pv")); err != nil {
		t.Fatal(err)
	}
	requests := d.take()
	if len(requests) != 2 || requests[0].(*csi.NodeUnpublishVolumeRequest).TargetPath != got.HostPath || requests[1].(*csi.NodeUnstageVolumeRequest).VolumeId != "handle" {
		t.Errorf("calls of the driver: %v", requests)
	}
	if staged, err := f.Staged(); err != nil || len(staged) > 0 {
		t.Errorf("left: %v %v", f.tree(t), err)
	}
}

// Unstage removes neither mount points nor other files.
func TestUnstageKeepsOtherFiles(t *testing.T) {
	f := newFixture(t)
	path := filepath.Join(f.root, csiRoot, "disk.test/abc/globalmount")
	if err := os.MkdirAll(path, 0o750); err != nil {
		t.Fatal(err)
	}
	f.mounted[path] = true
	id := Name + "/disk.test/abc/globalmount"
	if err := f.Unstage(t.Context(), id); err == nil || !strings.Contains(err.Error(), "something is mounted there") {
		t.Errorf("mounted: %v", err)
	}
	f.mounted[path] = false
	if err := os.WriteFile(filepath.Join(path, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Unstage(t.Context(), id); err == nil {
		t.Error("a directory with data was removed")
	}
	if _, err := os.Stat(filepath.Join(path, "data")); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"", Name, Name + "/a/b", Name + "/../../x/y/z", Name + "/a/../b", "other/a/b/c", Name + "/a/b/c/d"} {
		if err := f.Unstage(t.Context(), id); err == nil {
			t.Errorf("%q was unstaged", id)
		}
	}
}

func TestDeviceOf(t *testing.T) {
	f := newFixture(t)
	dir := f.published(false).Dir(Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	id, err := f.DeviceID(t.Context(), f.request().Spec)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"": "",
		`{"driverName":"disk.test","volumeHandle":"handle","volumeLifecycleMode":"Persistent"}`: id,
		`{"driverName":"disk.test","volumeHandle":"handle","volumeLifecycleMode":"Ephemeral"}`:  "",
		// Nothing is mounted for the pod, so it uses no device.
		`{"driverName":"disk.test"}`: "",
		`{"driverN`:                  "",
	} {
		os.Remove(filepath.Join(dir, volumeDataFile))
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, volumeDataFile), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := f.DeviceOf(f.published(false))
		if err != nil || got != want {
			t.Errorf("%s: %q (%v), want %q", text, got, err, want)
		}
	}
	raw, err := f.DeviceID(t.Context(), f.request(asBlock).Spec)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.DeviceOf(f.published(true)); err != nil || got != raw {
		t.Errorf("raw: %q %v, want %q", got, err, raw)
	}
}

func TestAttached(t *testing.T) {
	name := attachmentName("handle", driverName, "n")
	now := metav1.Now()
	for want, a := range map[string]*storagev1.VolumeAttachment{
		`volume handle has GET error for volume attachment ` + name + `: volumeattachments.storage.k8s.io "` + name + `" not found`: nil,
		"volume handle is not attached for volume attachment " + name:                                                               {},
		"no such disk":                       {Status: storagev1.VolumeAttachmentStatus{AttachError: &storagev1.VolumeError{Message: "no such disk"}}},
		"volume attachment is being deleted": {ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now, Finalizers: []string{"x"}}, Status: storagev1.VolumeAttachmentStatus{Attached: true}},
		"":                                   {Status: storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"path": "/dev/x"}}},
	} {
		f, d := newFixture(t), newDriver(t)
		if a != nil {
			a.Name = name
			if err := f.client.Tracker().Add(a); err != nil {
				t.Fatal(err)
			}
		}
		f.register(t, d)
		f.known = nil // of a driver that the cluster does not know, volumes are attached
		r := f.request()
		if got, err := f.AttachName(t.Context(), r.Spec); err != nil || got != "kubernetes.io/csi/disk.test^handle" {
			t.Errorf("name is %q: %v", got, err)
		}
		err := f.Attached(t.Context(), r)
		got := ""
		if err != nil {
			got = err.Error()
			if _, ok := plugin.MaxRetryDelay(err); !ok {
				t.Errorf("%q: not retried soon", got)
			}
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if want != "" {
			continue
		}
		if err := f.Stage(t.Context(), r); err != nil {
			t.Error(err)
		}
		if _, err := f.SetUp(t.Context(), r); err != nil {
			t.Error(err)
		}
		for _, requests := range d.take() {
			if got := requests.(interface{ GetPublishContext() map[string]string }).GetPublishContext(); got["path"] != "/dev/x" {
				t.Errorf("%T with %v", requests, got)
			}
		}
	}
}

func TestStageSecrets(t *testing.T) {
	f, d := newFixture(t, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "s"}, Data: map[string][]byte{"k": []byte("v")}}), newDriver(t)
	f.register(t, d)
	withSecret := func(name string) plugin.Request {
		return f.request(func(pv *v1.PersistentVolume, _ *v1.Pod) {
			pv.Spec.CSI.NodeStageSecretRef = &v1.SecretReference{Namespace: "x", Name: name}
		})
	}
	if err := f.Stage(t.Context(), withSecret("s")); err != nil {
		t.Fatal(err)
	}
	if requests := d.take(); requests[0].(*csi.NodeStageVolumeRequest).Secrets["k"] != "v" {
		t.Errorf("requests %v", requests)
	}
	const want = `fetching NodeStageSecretRef x/none failed: kubernetes.io/csi: failed to find the secret none in the namespace x with error: secrets "none" not found`
	if err := f.Stage(t.Context(), withSecret("none")); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
