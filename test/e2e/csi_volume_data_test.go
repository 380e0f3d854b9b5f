package e2e

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

// TestCSIUnreadableVolumeData overwrites vol_data.json of one pod's volume. The volume of another pod
// is still unstaged with that pod. Our kubelet also removes the affected volume; the reference does
// not find its driver and retries for ever.
func TestCSIUnreadableVolumeData(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "csi-note")
	space := clearedNamespace(t)
	d := startDriver(t, node, "note.csi.test")
	createCSIDriver(t, d.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)})
	awaitDriver(t, d)
	handles := map[string]string{}
	pods := map[string]*corev1.Pod{}
	for _, name := range []string{"broken", "whole"} {
		handles[name] = d.makeVolume(name, 16<<20)
		claim(t, space, name, corev1.CSIPersistentVolumeSource{Driver: d.name, VolumeHandle: handles[name], FSType: "ext4"}, corev1.PersistentVolumeFilesystem)
		pods[name] = create(t, space, podWithVolume(name, node.Name(), fromClaim(name)))
	}
	for name := range pods {
		awaitPod(t, space, name, 2*timeout, ready)
	}
	note := filepath.Join("/var/lib/kubelet/pods", string(pods["broken"].UID), "volumes/kubernetes.io~csi", space+"-broken", "vol_data.json")
	if err := os.WriteFile(node.Path(note), make([]byte, 300), 0o600); err != nil {
		t.Fatal(err)
	}
	unstaged := func(name string) func() string {
		return func() string {
			for _, call := range d.calls("NodeUnstageVolume") {
				if call.VolumeID == handles[name] {
					return ""
				}
			}
			return "the volume of pod " + name + " is not unstaged"
		}
	}
	leave := func(name string) {
		t.Helper()
		if err := client().CoreV1().Pods(space).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitPod(t, space, name, 2*timeout, gone)
		eventually(t, timeout, unstaged(name))
	}
	leave("whole")
	if unstaged("broken")() == "" {
		t.Error("the volume was unstaged while its pod runs")
	}
	inPod(t, node, space, "broken", `echo alive > /data/file`)
	if kubelet == bed.Ours {
		leave("broken")
		eventually(t, timeout, d.leftovers)
	}
}
