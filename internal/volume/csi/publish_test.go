package csi

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/plugin"
)

func to[T any](v T) *T { return &v }

// inline makes the request one for an inline volume.
func (f *fixture) inline() plugin.Request {
	r := f.request()
	r.PV, r.PVC = nil, nil
	r.Volume = &v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{
		Driver: driverName, FSType: to("xfs"), ReadOnly: to(true), VolumeAttributes: map[string]string{"a": "b"}}}}
	return r
}

func TestPublish(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.register(t, d)
	f.known.Spec.PodInfoOnMount = to(true)
	f.known.Spec.TokenRequests = []storagev1.TokenRequest{{Audience: "x"}, {}}
	r := f.request(func(pv *v1.PersistentVolume, p *v1.Pod) {
		pv.Spec.CSI.VolumeAttributes = map[string]string{"a": "b"}
		pv.Spec.MountOptions = []string{"noatime"}
		p.Spec.ServiceAccountName = "acct"
	})
	got, err := f.SetUp(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(f.root, "pods/uid/volumes/kubernetes.io~csi/pv/mount")
	if got.HostPath != target || got.ReadOnly || !got.RefreshAt.IsZero() {
		t.Errorf("result is %+v", got)
	}
	requests := d.take()[0].(*csi.NodePublishVolumeRequest)
	const tokens = `{"":{"token":"token of acct","expirationTimestamp":"1970-01-01T00:33:20Z"},"x":{"token":"token of acct","expirationTimestamp":"1970-01-01T00:33:20Z"}}`
	want := map[string]string{
		"a": "b", tokensKey: tokens,
		"csi.storage.k8s.io/pod.name": "p", "csi.storage.k8s.io/pod.namespace": "ns", "csi.storage.k8s.io/pod.uid": "uid",
		"csi.storage.k8s.io/serviceAccount.name": "acct", "csi.storage.k8s.io/ephemeral": "false",
	}
	if !maps.Equal(requests.VolumeContext, want) {
		t.Errorf("volume context is %v", requests.VolumeContext)
	}
	if c := requests.VolumeCapability; c.GetMount().GetFsType() != "ext4" || c.GetMount().GetMountFlags()[0] != "noatime" ||
		c.GetAccessMode().GetMode() != csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER {
		t.Errorf("capability is %v", c)
	}
	if len(r.PV.Spec.CSI.VolumeAttributes) != 1 {
		t.Errorf("the PersistentVolume was changed: %v", r.PV.Spec.CSI.VolumeAttributes)
	}

	f.known.Spec.ServiceAccountTokenInSecrets = to(true)
	if _, err := f.SetUp(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	requests = d.take()[0].(*csi.NodePublishVolumeRequest)
	if requests.Secrets[tokensKey] != tokens || requests.VolumeContext[tokensKey] != "" {
		t.Errorf("tokens are not in the secrets: %v", requests)
	}
}

func TestPublishInline(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.register(t, d)
	_, err := f.SetUp(t.Context(), f.inline())
	if want := `kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: volume mode "Ephemeral" not supported by driver disk.test (only supports ["Persistent"])`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	known := f.known
	f.known = nil
	_, err = f.SetUp(t.Context(), f.inline())
	if want := `kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: volume mode "Ephemeral" not supported by driver disk.test (no CSIDriver object)`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	f.known = known
	f.known.Spec.VolumeLifecycleModes = append(f.known.Spec.VolumeLifecycleModes, storagev1.VolumeLifecycleEphemeral)
	got, err := f.SetUp(t.Context(), f.inline())
	if err != nil || !got.ReadOnly {
		t.Fatalf("%+v %v", got, err)
	}
	requests := d.take()[0].(*csi.NodePublishVolumeRequest)
	if requests.VolumeId != inlineHandle("uid", "v") || !requests.Readonly || requests.StagingTargetPath != "" || requests.VolumeCapability.GetMount().FsType != "xfs" {
		t.Errorf("requests %v", requests)
	}
	if id, err := f.DeviceID(t.Context(), f.inline().Spec); id != "" || err != nil {
		t.Errorf("device is %q %v", id, err)
	}
	if name, err := f.AttachName(t.Context(), f.inline().Spec); name != "" || err != nil {
		t.Errorf("attached as %q %v", name, err)
	}
}

// The first publish that finally fails leaves nothing; a repeated one leaves the volume.
func TestFailedPublish(t *testing.T) {
	for name, c := range map[string]struct {
		code    codes.Code
		mounted bool
		stays   bool
	}{
		"final error":        {code: codes.Internal},
		"may be in progress": {code: codes.Aborted, stays: true},
		"already published":  {code: codes.Internal, mounted: true, stays: true},
	} {
		f, d := newFixture(t), newDriver(t)
		f.register(t, d)
		dir := f.published(false).Dir(Name)
		f.mounted[filepath.Join(dir, mountDir)] = c.mounted
		d.failWith(status.Error(c.code, "no"))
		if _, err := f.SetUp(t.Context(), f.request()); status.Code(unwrapFirst(err)) != c.code {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, volumeDataFile)); c.stays != (err == nil) {
			t.Errorf("%s: on disk is %v", name, f.tree(t))
		}
	}
}

func TestRepublish(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.register(t, d)
	f.known.Spec.RequiresRepublish = to(true)
	got, err := f.SetUp(t.Context(), f.request())
	if err != nil || !got.RefreshAt.Equal(f.clock.Now().Add(time.Minute)) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestTearDown(t *testing.T) {
	for _, block := range []bool{false, true} {
		f, d := newFixture(t), newDriver(t)
		f.register(t, d)
		r := f.request()
		if block {
			r = f.request(asBlock)
		}
		if err := f.Stage(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		var err error
		if block {
			_, err = f.MapDevice(t.Context(), r)
		} else {
			_, err = f.SetUp(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
		d.take()
		before := strings.Join(f.tree(t), "\n")
		f.Deregister(d.plugin())
		if err := f.TearDown(t.Context(), f.published(block)); err == nil || !strings.Contains(err.Error(), "not found in the list of registered CSI drivers") {
			t.Errorf("without a driver: %v", err)
		}
		f.register(t, d)
		d.failWith(status.Error(codes.Internal, "busy"))
		if err := f.TearDown(t.Context(), f.published(block)); err == nil || !strings.Contains(err.Error(), "busy") {
			t.Errorf("busy: %v", err)
		}
		if after := strings.Join(f.tree(t), "\n"); after != before {
			t.Errorf("a failure has changed\n%s\nto\n%s", before, after)
		}
		d.failWith(nil)
		d.take()
		for range 2 { // the second time nothing is left to do
			if err := f.TearDown(t.Context(), f.published(block)); err != nil {
				t.Error(err)
			}
		}
		if requests := d.take(); requests[0].(*csi.NodeUnpublishVolumeRequest).VolumeId != "handle" {
			t.Errorf("requests %v", requests)
		}
		id, err := f.DeviceID(t.Context(), r.Spec)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := f.Unstage(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
		for _, left := range f.tree(t) {
			if strings.Contains(left, "pv") || strings.Contains(left, "globalmount") || strings.Contains(left, volumeDataFile) {
				t.Errorf("block %v: left behind: %s", block, left)
			}
		}
	}
}

func TestAppliesFSGroup(t *testing.T) {
	rwo, rox := []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}, []v1.PersistentVolumeAccessMode{v1.ReadOnlyMany}
	for name, c := range map[string]struct {
		policy storagev1.FSGroupPolicy
		from   source
		modes  []v1.PersistentVolumeAccessMode
		want   bool
	}{
		"single writer with fsType": {from: source{fsType: "ext4"}, modes: rwo, want: true},
		"no fsType":                 {from: source{}, modes: rwo},
		"many readers":              {from: source{fsType: "ext4"}, modes: rox},
		"inline volume":             {from: source{fsType: "ext4", ephemeral: true}, want: true},
		"read-only":                 {from: source{fsType: "ext4", readOnly: true}, modes: rwo},
		"policy None":               {policy: storagev1.NoneFSGroupPolicy, from: source{fsType: "ext4"}, modes: rwo},
		"policy File":               {policy: storagev1.FileFSGroupPolicy, modes: rox, want: true},
		"policy File, read-only":    {policy: storagev1.FileFSGroupPolicy, from: source{readOnly: true}, modes: rwo},
	} {
		f := newFixture(t)
		f.known.Spec.FSGroupPolicy = to(c.policy)
		r := f.request(func(pv *v1.PersistentVolume, _ *v1.Pod) { pv.Spec.AccessModes = c.modes })
		if got := appliesFSGroup(f.known, r, c.from); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The driver applies the fsGroup if it has the capability, else the kubelet does.
func TestFSGroup(t *testing.T) {
	for _, caps := range []bool{false, true} {
		f, d := newFixture(t), newDriver(t)
		if caps {
			d.caps = append(d.caps, canMountGroup)
		}
		f.register(t, d)
		f.known.Spec.FSGroupPolicy = to(storagev1.FileFSGroupPolicy)
		r := f.request(func(_ *v1.PersistentVolume, p *v1.Pod) {
			p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: to(int64(os.Getgid()))}
		})
		got, err := f.SetUp(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if group := d.take()[0].(*csi.NodePublishVolumeRequest).VolumeCapability.GetMount().VolumeMountGroup; (group != "") != caps {
			t.Errorf("capability %v: the request has group %q", caps, group)
		}
		info, err := os.Stat(got.HostPath)
		if err != nil {
			t.Fatal(err)
		}
		if ours := info.Mode()&os.ModeSetgid != 0; ours == caps {
			t.Errorf("capability %v: mode is %v", caps, info.Mode())
		}
	}
}

func TestAccessModes(t *testing.T) {
	type m = csi.VolumeCapability_AccessMode_Mode
	for mode, want := range map[v1.PersistentVolumeAccessMode][2]m{
		v1.ReadWriteOnce:    {csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
		v1.ReadWriteOncePod: {csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER},
		v1.ReadOnlyMany:     {csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY},
		v1.ReadWriteMany:    {csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
	} {
		for i, caps := range []capabilities{{}, {canShareWrites: true}} {
			if got := caps.access(mode).Mode; got != want[i] {
				t.Errorf("%s with %v is %v, want %v", mode, caps, got, want[i])
			}
		}
	}
}

func TestExpandAndMeasure(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.register(t, d)
	r := f.request()
	at := plugin.Result{HostPath: "/target"}
	if err := f.Expand(t.Context(), r, at, resource.MustParse("2Gi")); err != nil {
		t.Fatal(err)
	}
	requests := d.take()[0].(*csi.NodeExpandVolumeRequest)
	if requests.VolumePath != "/target" || requests.CapacityRange.RequiredBytes != 2<<30 || !strings.HasSuffix(requests.StagingTargetPath, "/globalmount") {
		t.Errorf("requests %v", requests)
	}
	usage, err := f.Measure(t.Context(), r, at)
	if want := (pod.VolumeUsage{CapacityBytes: 100, AvailableBytes: 70, UsedBytes: 30, Inodes: -1, InodesFree: -1, InodesUsed: -1}); err != nil || usage != want {
		t.Errorf("usage is %+v %v", usage, err)
	}
	d.take()
	d.mu.Lock()
	d.caps = nil
	d.mu.Unlock()
	if _, err := f.Measure(t.Context(), r, at); !errors.Is(err, ErrNotMeasured) {
		t.Errorf("measured by a driver without the capability: %v", err)
	}
	if err := f.Expand(t.Context(), r, at, resource.MustParse("2Gi")); err != nil || len(d.take()) > 0 {
		t.Errorf("expanded by a driver without the capability: %v", err)
	}
}

// TestExpandClasses: the class of an error depends on the status code.
func TestExpandClasses(t *testing.T) {
	classes := []error{plugin.ErrInfeasible, plugin.ErrInUse, plugin.ErrUncertain}
	for code, want := range map[codes.Code]error{
		codes.InvalidArgument: plugin.ErrInfeasible, codes.OutOfRange: plugin.ErrInfeasible, codes.NotFound: plugin.ErrInfeasible,
		codes.FailedPrecondition: plugin.ErrInUse,
		codes.Aborted:            plugin.ErrUncertain, codes.Unavailable: plugin.ErrUncertain,
		codes.Internal: nil,
	} {
		answer := status.Error(code, "no")
		err := withClass(answer, fmt.Errorf("failed : %w", answer))
		if err.Error() != "failed : "+answer.Error() || !errors.Is(err, answer) {
			t.Errorf("%v: %v", code, err)
		}
		for _, class := range classes {
			if errors.Is(err, class) != (class == want) {
				t.Errorf("%v: class %v is %v", code, class, errors.Is(err, class))
			}
		}
	}
}
