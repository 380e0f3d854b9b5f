package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestCSIMigration: disks that are described in the words of a kind once built into
// Kubernetes are brought up by the CSI driver that took its place.
func TestCSIMigration(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "migration")
	space := namespace(t)
	d := startDriver(t, node, "pd.csi.storage.gke.io")
	describeDriver(t, d.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)})
	awaitDriver(t, d)
	announced, err := client().StorageV1().CSINodes().Get(t.Context(), node.Name(), metav1.GetOptions{})
	if err != nil || !strings.Contains(announced.Annotations[corev1.MigratedPluginsAnnotationKey], "kubernetes.io/gce-pd") {
		t.Errorf("the CSINode announces %v, %v", announced.Annotations, err)
	}

	id := d.makeVolume("disk", 32<<20)
	claimed(t, space, "disk", corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: id, FSType: "ext4"},
	}})
	startPod(t, space, user("claims", node.Name(), fromClaim("disk")))
	inPod(t, node, space, "claims", `grep -q " /data ext4 " /proc/mounts && echo kept > /data/file`)
	remove(t, space, "claims")
	eventually(t, 2*usual, d.traces)
	startPod(t, space, user("inline", node.Name(), corev1.VolumeSource{
		GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: id, FSType: "ext4"},
	}))
	inPod(t, node, space, "inline", `grep -q kept /data/file`)
	remove(t, space, "inline")
	eventually(t, 2*usual, d.traces)

	handle := "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/" + id
	calls := d.calls("NodeStageVolume")
	if len(calls) != 2 || calls[0].VolumeID != handle || calls[1].VolumeID != handle {
		t.Errorf("staged %+v, want %s twice", calls, handle)
	}
}
