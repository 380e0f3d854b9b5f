package csi

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
)

// A volume with a label is staged and published with it, has it in its volume data, and rejects pods
// with another label.
func TestSELinuxLabel(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.register(t, d)
	r := f.request(func(pv *v1.PersistentVolume, _ *v1.Pod) { pv.Spec.MountOptions = []string{"noatime"} })
	for _, caps := range []*bool{nil, to(false), to(true)} {
		f.known.Spec.SELinuxMount = caps
		if got, err := f.SupportsSELinuxMount(t.Context(), r.Spec); err != nil || got != (caps != nil && *caps) {
			t.Errorf("%v: %v, %v", caps, got, err)
		}
	}

	r.Label = "system_u:object_r:container_file_t:s0:c1,c2"
	if err := f.Stage(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	got, err := f.SetUp(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got.SELinuxRelabel {
		t.Error("files are relabelled as well")
	}
	want := []string{"noatime", `context="` + r.Label + `"`}
	requests := d.take()
	staged := requests[0].(*csi.NodeStageVolumeRequest)
	for _, c := range []*csi.VolumeCapability{staged.VolumeCapability, requests[1].(*csi.NodePublishVolumeRequest).VolumeCapability} {
		if !slices.Equal(c.GetMount().GetMountFlags(), want) {
			t.Errorf("request %v, want flags %q", c, want)
		}
	}
	if len(r.PV.Spec.MountOptions) != 1 {
		t.Errorf("the PersistentVolume was changed: %v", r.PV.Spec.MountOptions)
	}
	for _, dir := range []string{filepath.Dir(staged.StagingTargetPath), filepath.Dir(got.HostPath)} {
		if volumeData, err := os.ReadFile(filepath.Join(dir, volumeDataFile)); err != nil || !strings.Contains(string(volumeData), `"seLinuxMountContext":"`+r.Label+`"`) {
			t.Errorf("the volume data is %s, %v", volumeData, err)
		}
	}

	f.mounted = map[string]bool{staged.StagingTargetPath: true}
	r.Label = ""
	for what, try := range map[string]func() error{
		"stage":   func() error { return f.Stage(t.Context(), r) },
		"publish": func() error { _, err := f.SetUp(t.Context(), r); return err },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), "conflicting SELinux labels of volume pv:") {
			t.Errorf("%s for a pod with another label: %v", what, err)
		}
	}
	if requests := d.take(); len(requests) > 0 {
		t.Errorf("calls of the driver: %v", requests)
	}
}
