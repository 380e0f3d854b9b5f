package volume

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/volume/plugin"
)

// TestMigrate: every migrated in-tree kind is translated to its CSI driver, inline and as a
// PersistentVolume.
func TestMigrate(t *testing.T) {
	for _, c := range []struct {
		volume         v1.VolumeSource
		pv             v1.PersistentVolumeSource
		driver, handle string
	}{
		{v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}},
			v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}},
			"ebs.csi.aws.com", "vol-1"},
		{v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}},
			v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}},
			"pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk"},
		{v1.VolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DataDiskURI: "/sub/disk"}},
			v1.PersistentVolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DataDiskURI: "/sub/disk"}},
			"disk.csi.azure.com", "/sub/disk"},
		{v1.VolumeSource{AzureFile: &v1.AzureFileVolumeSource{SecretName: "azure-storage-account-a-secret", ShareName: "share"}},
			v1.PersistentVolumeSource{AzureFile: &v1.AzureFilePersistentVolumeSource{SecretName: "azure-storage-account-a-secret", ShareName: "share"}},
			"file.csi.azure.com", ""},
		{v1.VolumeSource{Cinder: &v1.CinderVolumeSource{VolumeID: "cinder-1"}},
			v1.PersistentVolumeSource{Cinder: &v1.CinderPersistentVolumeSource{VolumeID: "cinder-1"}},
			"cinder.csi.openstack.org", "cinder-1"},
		{v1.VolumeSource{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: "[store] disk.vmdk"}},
			v1.PersistentVolumeSource{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: "[store] disk.vmdk"}},
			"csi.vsphere.vmware.com", "[store] disk.vmdk"},
		{v1.VolumeSource{PortworxVolume: &v1.PortworxVolumeSource{VolumeID: "px-1"}},
			v1.PersistentVolumeSource{PortworxVolume: &v1.PortworxVolumeSource{VolumeID: "px-1"}},
			"pxd.portworx.com", "px-1"},
	} {
		t.Run(c.driver, func(t *testing.T) {
			pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: v1.PersistentVolumeSpec{
				PersistentVolumeSource: c.pv, ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "claim"},
			}}
			before := pv.DeepCopy()
			for _, from := range []plugin.Spec{
				{Volume: &v1.Volume{Name: "vol", VolumeSource: c.volume}},
				{Volume: &v1.Volume{Name: "vol"}, PV: pv, PVC: &v1.PersistentVolumeClaim{}, ClaimReadOnly: true},
			} {
				got, err := migrate(from, "ns")
				if err != nil || got.PV == nil || got.PV.Spec.CSI == nil || got.PV.Spec.CSI.Driver != c.driver || got.PVC != from.PVC || got.ClaimReadOnly != from.ClaimReadOnly {
					t.Fatalf("%+v, %v", got, err)
				}
				if c.handle != "" && got.PV.Spec.CSI.VolumeHandle != c.handle {
					t.Errorf("handle %q, want %q", got.PV.Spec.CSI.VolumeHandle, c.handle)
				}
				if from.PV != nil && got.Name() != "pv" {
					t.Errorf("named %q", got.Name())
				}
			}
			if pv.Spec.CSI != nil || pv.String() != before.String() {
				t.Error("the original PersistentVolume was changed")
			}
		})
	}
}

func TestMigrateKeepsOtherKinds(t *testing.T) {
	spec := plugin.Spec{Volume: &v1.Volume{Name: "vol", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	if got, err := migrate(spec, "ns"); err != nil || got != spec {
		t.Errorf("%+v, %v", got, err)
	}
}
