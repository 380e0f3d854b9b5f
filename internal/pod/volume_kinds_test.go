package pod

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestVolumeKinds: each field of v1.VolumeSource has one row.
func TestVolumeKinds(t *testing.T) {
	source := reflect.TypeFor[v1.VolumeSource]()
	for i := range source.NumField() {
		var v v1.Volume
		f := reflect.ValueOf(&v.VolumeSource).Elem().Field(i)
		f.Set(reflect.New(f.Type().Elem()))
		name, _, _ := strings.Cut(source.Field(i).Tag.Get("json"), ",")
		if kinds := kindsOf(&v); len(kinds) != 1 || kinds[0].field != name {
			t.Errorf("a %s volume has %d rows, want one that is called %q", name, len(kinds), name)
		}
	}
	if len(volumeKinds) != source.NumField() {
		t.Errorf("%d rows, want %d", len(volumeKinds), source.NumField())
	}
}

// TestEmptyVolumeSources: no function of a row fails on a source without values.
func TestEmptyVolumeSources(t *testing.T) {
	for i := range reflect.TypeFor[v1.VolumeSource]().NumField() {
		v := v1.Volume{Name: "v"}
		f := reflect.ValueOf(&v.VolumeSource).Elem().Field(i)
		f.Set(reflect.New(f.Type().Elem()))
		p := &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{v}}}
		volume := &p.Spec.Volumes[0]
		defaultVolume(volume)
		_, _ = validateVolumes(p.Spec.Volumes, nil)
		_ = CheckNoAPIReference(p)
		_ = NewGatedFields(func(string) bool { return false }).DropDisabled(p)
		_, _ = VolumeConfigMaps(volume), VolumeSecrets(volume)
		_, _ = VolumeClaim(p, volume)
		_, _, _ = VolumeShowsPod(volume), VolumeOnNodeDisk(volume), VolumeIsStateless(volume)
	}
}

func TestMigratedVolumePlugins(t *testing.T) {
	// As the reference kubelet writes them to the CSINode.
	want := []string{
		"kubernetes.io/aws-ebs", "kubernetes.io/azure-disk", "kubernetes.io/azure-file", "kubernetes.io/cinder",
		"kubernetes.io/gce-pd", "kubernetes.io/portworx-volume", "kubernetes.io/vsphere-volume",
	}
	if got := MigratedVolumePlugins(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
