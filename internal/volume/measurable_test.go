package volume

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestOwnedVolumes: hostPath and image volumes have no stats; a claim is measured by its file system or
// device.
func TestOwnedVolumes(t *testing.T) {
	device := disk(t)
	n := newNode(t)
	p := n.pod(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	for name, source := range map[string]v1.VolumeSource{
		"host":  {HostPath: &v1.HostPathVolumeSource{Path: t.TempDir()}},
		"image": {Image: &v1.ImageVolumeSource{Reference: "x"}},
		"raw":   n.claimed(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: device}}, raw),
	} {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
		c := &p.Spec.Containers[0]
		if name == "raw" {
			c.VolumeDevices = append(c.VolumeDevices, v1.VolumeDevice{Name: name, DevicePath: "/dev/x"})
		} else {
			c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: name, MountPath: "/" + name})
		}
	}
	n.mount(p)
	owned := n.MeasurableVolumes(p.UID)
	if len(owned) != 2 || owned[0].Name != "raw" || owned[0].Claim != "claim" || owned[0].Measure == nil || owned[1].Name != "vol" || owned[1].Measure != nil {
		t.Fatalf("owned: %+v", owned)
	}
	if u, err := owned[0].Measure(t.Context()); err != nil || u.CapacityBytes != 16<<20 || u.UsedBytes >= 0 {
		t.Errorf("the device: %+v, %v", u, err)
	}
	n.unmount(p.UID)
}
