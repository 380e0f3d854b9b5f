package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/images"
)

// TestSubPathRace: one container replaces a directory by a link to / as fast as it can, while others are
// started with that directory as their subPath. None of them may see the node's root. The test of package
// volume does ten thousand swaps.
func TestSubPathRace(t *testing.T) {
	t.Parallel()
	const looks = 5
	node, in := steadyNode(t), namespace(t)
	p := sleeper("racing", node.Name())
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.Spec.TerminationGracePeriodSeconds = new(int64)
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	p.Spec.InitContainers = []corev1.Container{{
		Name: "swaps", Image: images.Busybox, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		Command: []string{"sh", "-c", "cd /v; mkdir -p p; ln -sfn / l; n=0; " +
			"while :; do mv p q; mv -T l p; n=$((n+2)); echo $n > n; mv -T p l; mv q p; done"},
		VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}},
	}}
	for i := range looks {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{
			Name: fmt.Sprint("looks-", i), Image: images.Busybox,
			Command:      []string{"sh", "-c", "if [ -e /p/var/lib/kubelet ]; then echo escaped; ls /p; exit 1; fi"},
			VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/p", SubPath: "p"}},
		})
	}
	p.Spec.Containers[0].Command = []string{"cat", "/v/n"}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
	create(t, in, p)
	awaitPod(t, in, "racing", timeoutFor(4*time.Minute, 10*time.Minute), func(p *corev1.Pod) string {
		switch {
		case p == nil:
			return "the pod does not exist"
		case p.Status.Phase == corev1.PodFailed:
			t.Fatalf("a container saw the node's root: %+v", p.Status.InitContainerStatuses)
		case p.Status.Phase != corev1.PodSucceeded:
			return "the pod is " + string(p.Status.Phase)
		}
		return ""
	})
	t.Logf("%d containers started during %s swaps", looks, strings.TrimSpace(kubectl(t, "-n", in, "logs", "racing", "-c", "c")))
}
