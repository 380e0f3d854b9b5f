package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestCSIMigration: volumes of a migrated in-tree kind are mounted by the CSI driver.
func TestCSIMigration(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "migration")
	space := namespace(t)
	d := startDriver(t, node, "pd.csi.storage.gke.io")
	createCSIDriver(t, d.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)})
	awaitDriver(t, d)
	announced, err := client().StorageV1().CSINodes().Get(t.Context(), node.Name(), metav1.GetOptions{})
	if err != nil || !strings.Contains(announced.Annotations[corev1.MigratedPluginsAnnotationKey], "kubernetes.io/gce-pd") {
		t.Errorf("annotations of the CSINode: %v, %v", announced.Annotations, err)
	}

	id := d.makeVolume("disk", 32<<20)
	createVolumeAndClaim(t, space, "disk", corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: id, FSType: "ext4"},
	}})
	startPod(t, space, podWithVolume("claims", node.Name(), fromClaim("disk")))
	inPod(t, node, space, "claims", `grep -q " /data ext4 " /proc/mounts && echo kept > /data/file`)
	deletePod(t, space, "claims")
	eventually(t, 2*timeout, d.leftovers)
	startPod(t, space, podWithVolume("inline", node.Name(), corev1.VolumeSource{
		GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: id, FSType: "ext4"},
	}))
	inPod(t, node, space, "inline", `grep -q kept /data/file`)
	deletePod(t, space, "inline")
	eventually(t, 2*timeout, d.leftovers)

	handle := "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/" + id
	calls := d.calls("NodeStageVolume")
	if len(calls) != 2 || calls[0].VolumeID != handle || calls[1].VolumeID != handle {
		t.Errorf("staged %+v, want %s twice", calls, handle)
	}
}
