package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// smallDisk mounts a file system of 200 MB and 2000 inodes on /var/lib/kubelet.
const smallDisk = `
truncate -s 200M /var/small.img
mkfs.ext4 -q -m 0 -N 2000 /var/small.img
mount -o loop /var/small.img /var/lib/kubelet`

// TestEvictionForDisk: a pod that uses up the node's disk space or inodes is evicted, and no other
// pod. The disk pressure ends afterwards.
func TestEvictionForDisk(t *testing.T) {
	t.Parallel()
	in := namespace(t)
	node := bareNode(t, "narrow")
	if _, err := node.Exec(t.Context(), "sh", "-ec", smallDisk); err != nil {
		t.Fatal(err)
	}
	startKubelet(t, node, `
evictionHard: {nodefs.available: 80Mi, nodefs.inodesFree: "600"}
evictionPressureTransitionPeriod: 11s # the reference updates its conditions every 10 s
volumeStatsAggPeriod: 1s
`)
	create(t, in, sleeper("bystander", node.Name()))
	awaitPod(t, in, "bystander", timeout, ready)

	for _, c := range []struct{ name, write, message string }{
		{"writer", "dd if=/dev/zero of=/v/file bs=1M count=130", "The node was low on resource: ephemeral-storage. Threshold quantity: 80Mi, available: "},
		{"maker", "i=0; while [ $i -lt 1600 ]; do : > /v/$i; i=$((i+1)); done", "The node was low on resource: inodes. Threshold quantity: 600, available: "},
	} {
		create(t, in, filler(c.name, node.Name(), c.write))
		checkEvicted(t, awaitPod(t, in, c.name, time.Minute, failed), c.message)
		awaitNode(t, node.Name(), timeout, hasCondition(corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure"))
		awaitNode(t, node.Name(), time.Minute, hasCondition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"))
		awaitNode(t, node.Name(), timeout, schedulable)
	}
	awaitPod(t, in, "bystander", timeout, ready)
}

// filler is a pod that runs a command, with a volume at /v, and then sleeps.
func filler(name, node, write string) *corev1.Pod {
	p := sleeper(name, node)
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	c := &p.Spec.Containers[0]
	c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
	c.Command = []string{"sh", "-c", write + "; exec sleep 3600"}
	return p
}

// TestEvictionForLimits: a pod that exceeds its own storage limits is evicted, also without disk
// pressure.
func TestEvictionForLimits(t *testing.T) {
	t.Parallel()
	in := namespace(t)
	node := steadyNode(t)
	limit := resource.MustParse("4Mi")

	volume := filler("volume", node.Name(), "dd if=/dev/zero of=/v/file bs=1M count=8")
	volume.Spec.Volumes[0].EmptyDir.SizeLimit = &limit
	layer := filler("layer", node.Name(), "dd if=/dev/zero of=/file bs=1M count=8")
	layer.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: limit}
	frugal := filler("frugal", node.Name(), "dd if=/dev/zero of=/v/file bs=1M count=2")
	frugal.Spec.Volumes[0].EmptyDir.SizeLimit = &limit
	frugal.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: limit}
	for _, p := range []*corev1.Pod{volume, layer, frugal} {
		create(t, in, p)
	}
	for name, message := range map[string]string{
		"volume": `Usage of EmptyDir volume "v" exceeds the limit "4Mi". `,
		"layer":  "Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. ",
	} {
		ended := awaitPod(t, in, name, timeoutFor(time.Minute, 3*time.Minute), failed)
		if s := ended.Status; s.Reason != "Evicted" || s.Message != message {
			t.Errorf("%s: status is %s: %s", name, s.Reason, s.Message)
		}
		if e := awaitEvicted(t, in, name, nil); e.Message != message {
			t.Errorf("%s: the event is %s", name, e.Message)
		}
	}
	awaitPod(t, in, "frugal", timeout, ready)
}
