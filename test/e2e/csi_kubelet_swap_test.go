package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

// TestCSIKubeletSwap: each kubelet unpublishes and unstages volumes of the other.
func TestCSIKubeletSwap(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("runs both kubelets")
	}
	t.Parallel()
	node := ownNode(t, "csi-swap")
	swapKubelet(t, node, bed.Reference)
	space := namespace(t)
	d := startDriver(t, node, "swap.csi.test")
	createCSIDriver(t, d.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)})
	awaitDriver(t, d)
	claim(t, space, "disk", corev1.CSIPersistentVolumeSource{Driver: d.name, VolumeHandle: d.makeVolume("disk", 16<<20), FSType: "ext4"}, corev1.PersistentVolumeFilesystem)
	claim(t, space, "raw", corev1.CSIPersistentVolumeSource{Driver: d.name, VolumeHandle: d.makeVolume("raw", 16<<20)}, corev1.PersistentVolumeBlock)

	for _, to := range []bed.KubeletKind{bed.Ours, bed.Reference} {
		disk := podWithVolume("disk", node.Name(), fromClaim("disk"))
		raw := podWithVolume("raw", node.Name(), fromClaim("raw"))
		c := &raw.Spec.Containers[0]
		c.VolumeMounts, c.VolumeDevices = nil, []corev1.VolumeDevice{{Name: "v", DevicePath: "/dev/raw"}}
		before := map[string]*corev1.Pod{}
		for _, pod := range []*corev1.Pod{disk, raw} {
			create(t, space, pod)
			before[pod.Name] = awaitPod(t, space, pod.Name, 2*timeout, ready)
		}
		swapKubelet(t, node, to)
		for name, was := range before {
			checkSameContainers(t, was, awaitPod(t, space, name, 2*timeout, ready))
			inPod(t, node, space, name, "true")
			deletePod(t, space, name)
		}
		eventually(t, 2*timeout, d.leftovers)
	}
}
