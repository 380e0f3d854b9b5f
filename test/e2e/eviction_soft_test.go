package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

// imageDisk has the runtime keep images and what containers write on a file system of the
// given size.
const imageDisk = `
truncate -s "$0" /var/images.img
mkfs.ext4 -q -m 0 /var/images.img
mount -o loop /var/images.img /var/lib/containerd`

// A node that keeps images apart looks at that disk by itself: who writes most there is
// evicted, not who fills up the other one. Below a soft threshold the node says so at once,
// and the pod has time to think better of it.
func TestEvictionSoftly(t *testing.T) {
	t.Parallel()
	const grace = 15 * time.Second
	in := namespace(t)
	node := bareNode(t, "apart")
	moveImages(t, node, "400M")
	startKubelet(t, node, `
evictionHard: {imagefs.available: 10Mi, nodefs.available: 1%, memory.available: 100Mi}
evictionSoft: {imagefs.available: 150Mi}
evictionSoftGracePeriod: {imagefs.available: `+grace.String()+`}
evictionMaxPodGracePeriod: 1
evictionPressureTransitionPeriod: 11s # the reference tells of its conditions every 10 s
`)
	elsewhere := filler("elsewhere", node.Name(), "dd if=/dev/zero of=/v/file bs=1M count=400; dd if=/dev/zero of=/file bs=1M count=1")
	create(t, in, elsewhere)
	awaitPod(t, in, "elsewhere", usual, ready)
	create(t, in, filler("writer", node.Name(), "dd if=/dev/zero of=/file bs=1M count=280"))

	under := awaitNode(t, node.Name(), time.Minute, pressed(corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure"))
	for _, c := range under.Status.Conditions {
		if c.Type != corev1.NodeDiskPressure {
			continue
		}
		ended := awaitPod(t, in, "writer", 2*time.Minute, failed)
		// The condition is in whole seconds, and the reference tells of it up to 10 s late.
		if waited := time.Since(c.LastTransitionTime.Time); waited < within(grace-time.Second, grace-11*time.Second) {
			t.Errorf("the pod was given %v to think better of it", waited)
		}
		checkEvicted(t, ended, "The node was low on resource: ephemeral-storage. Threshold quantity: 150Mi, available: ")
	}
	awaitNode(t, node.Name(), time.Minute, pressed(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"))
	awaitPod(t, in, "elsewhere", usual, ready)
}

// A pod that writes to its very end is the only one to go: what it adds after it was chosen, and
// the little that others write meanwhile, is no reason for the next to follow before the
// runtime has given back what the first one wrote.
func TestEvictionOfAnEndlessWriter(t *testing.T) {
	t.Parallel()
	in := namespace(t)
	node := bareNode(t, "endless")
	moveImages(t, node, "800M")
	startKubelet(t, node, `
evictionHard: {imagefs.available: 300Mi, nodefs.available: 1%, memory.available: 100Mi}
evictionPressureTransitionPeriod: 11s # the reference tells of its conditions every 10 s
`)
	create(t, in, filler("bystander", node.Name(), "while :; do date; date >> /lines; sleep 1; done"))
	awaitPod(t, in, "bystander", usual, ready)
	// The shell is its first process and has no handler, so that it writes until it is killed.
	create(t, in, filler("writer", node.Name(), "while :; do dd if=/dev/zero bs=1M count=24 >> /file; sleep 1; done"))

	checkEvicted(t, awaitPod(t, in, "writer", 2*time.Minute, failed), "The node was low on resource: ephemeral-storage. Threshold quantity: 300Mi, available: ")
	awaitNode(t, node.Name(), usual, pressed(corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure"))
	awaitNode(t, node.Name(), time.Minute, pressed(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"))
	awaitPod(t, in, "bystander", usual, ready)
}

// moveImages has the node's runtime begin anew on a disk of its own.
func moveImages(t *testing.T, node *bed.Box, size string) {
	t.Helper()
	if err := node.StopContainerd(); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Exec(t.Context(), "sh", "-ec", imageDisk, size); err != nil {
		t.Fatal(err)
	}
	if err := node.StartContainerd(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := node.ImportImages(t.Context()); err != nil {
		t.Fatal(err)
	}
}
