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

// A volume that is to have a label is staged and published with it, says so on the disk, and
// is not for pods of another label.
func TestLabel(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.register(t, d)
	r := f.request(func(pv *v1.PersistentVolume, _ *v1.Pod) { pv.Spec.MountOptions = []string{"noatime"} })
	for _, able := range []*bool{nil, to(false), to(true)} {
		f.known.Spec.SELinuxMount = able
		if got, err := f.SupportsSELinuxMount(t.Context(), r.Spec); err != nil || got != (able != nil && *able) {
			t.Errorf("%v: %v, %v", able, got, err)
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
		t.Error("its files are labelled once more")
	}
	want := []string{"noatime", `context="` + r.Label + `"`}
	asked := d.take()
	staged := asked[0].(*csi.NodeStageVolumeRequest)
	for _, c := range []*csi.VolumeCapability{staged.VolumeCapability, asked[1].(*csi.NodePublishVolumeRequest).VolumeCapability} {
		if !slices.Equal(c.GetMount().GetMountFlags(), want) {
			t.Errorf("asked with %v, want flags %q", c, want)
		}
	}
	if len(r.PV.Spec.MountOptions) != 1 {
		t.Errorf("the PersistentVolume was changed: %v", r.PV.Spec.MountOptions)
	}
	for _, dir := range []string{filepath.Dir(staged.StagingTargetPath), filepath.Dir(got.HostPath)} {
		if note, err := os.ReadFile(filepath.Join(dir, noteFile)); err != nil || !strings.Contains(string(note), `"seLinuxMountContext":"`+r.Label+`"`) {
			t.Errorf("the note is %s, %v", note, err)
		}
	}

	f.mounted = map[string]bool{staged.StagingTargetPath: true}
	r.Label = ""
	for what, try := range map[string]func() error{
		"stage":   func() error { return f.Stage(t.Context(), r) },
		"publish": func() error { _, err := f.SetUp(t.Context(), r); return err },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), "conflicting SELinux labels of volume pv:") {
			t.Errorf("%s for a pod of another label: %v", what, err)
		}
	}
	if asked := d.take(); len(asked) > 0 {
		t.Errorf("the driver was asked %v", asked)
	}
}
