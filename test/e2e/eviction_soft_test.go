package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

// imageDisk mounts a file system of the given size on /var/lib/containerd.
const imageDisk = `
truncate -s "$0" /var/images.img
mkfs.ext4 -q -m 0 /var/images.img
mount -o loop /var/images.img /var/lib/containerd`

// TestSoftEviction uses a node with a separate image file system: the pod that writes most there is
// evicted, not one that fills the other disk. Below a soft threshold the node has the condition at
// once, and the pod is evicted after the grace period.
func TestSoftEviction(t *testing.T) {
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
evictionPressureTransitionPeriod: 11s # the reference updates its conditions every 10 s
`)
	elsewhere := filler("elsewhere", node.Name(), "dd if=/dev/zero of=/v/file bs=1M count=400; dd if=/dev/zero of=/file bs=1M count=1")
	create(t, in, elsewhere)
	awaitPod(t, in, "elsewhere", timeout, ready)
	create(t, in, filler("writer", node.Name(), "dd if=/dev/zero of=/file bs=1M count=280"))

	under := awaitNode(t, node.Name(), time.Minute, hasCondition(corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure"))
	for _, c := range under.Status.Conditions {
		if c.Type != corev1.NodeDiskPressure {
			continue
		}
		ended := awaitPod(t, in, "writer", 2*time.Minute, failed)
		// The condition has whole seconds, and the reference sets it up to 10 s late.
		if waited := time.Since(c.LastTransitionTime.Time); waited < timeoutFor(grace-time.Second, grace-11*time.Second) {
			t.Errorf("the pod was evicted after %v, before the grace period", waited)
		}
		checkEvicted(t, ended, "The node was low on resource: ephemeral-storage. Threshold quantity: 150Mi, available: ")
	}
	awaitNode(t, node.Name(), time.Minute, hasCondition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"))
	awaitPod(t, in, "elsewhere", timeout, ready)
}

// TestEvictionOfContinuousWriter: a pod that writes until it is killed is the only one that is
// evicted. What it and other pods write meanwhile must not cause a second eviction before the
// runtime has released the first pod's space.
func TestEvictionOfContinuousWriter(t *testing.T) {
	t.Parallel()
	in := namespace(t)
	node := bareNode(t, "endless")
	moveImages(t, node, "800M")
	startKubelet(t, node, `
evictionHard: {imagefs.available: 300Mi, nodefs.available: 1%, memory.available: 100Mi}
evictionPressureTransitionPeriod: 11s # the reference updates its conditions every 10 s
`)
	create(t, in, filler("bystander", node.Name(), "while :; do date; date >> /lines; sleep 1; done"))
	awaitPod(t, in, "bystander", timeout, ready)
	// The shell is PID 1 without a signal handler, so it ignores SIGTERM and writes until it is killed.
	create(t, in, filler("writer", node.Name(), "while :; do dd if=/dev/zero bs=1M count=24 >> /file; sleep 1; done"))

	checkEvicted(t, awaitPod(t, in, "writer", 2*time.Minute, failed), "The node was low on resource: ephemeral-storage. Threshold quantity: 300Mi, available: ")
	awaitNode(t, node.Name(), timeout, hasCondition(corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure"))
	awaitNode(t, node.Name(), time.Minute, hasCondition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"))
	awaitPod(t, in, "bystander", timeout, ready)
}

// moveImages restarts the node's runtime with empty data on a separate file system.
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
