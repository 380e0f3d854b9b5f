package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/images"
)

// TestImageVolume: an image volume has the image's files, all or a subPath, read-only. A missing image
// blocks only the containers that mount it.
func TestImageVolume(t *testing.T) {
	t.Parallel()
	in := namespace(t)
	p := sleeper("shows", steady.Name())
	shown := func(name, reference string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: reference, PullPolicy: corev1.PullNever}}}
	}
	p.Spec.Volumes = []corev1.Volume{shown("busybox", images.Busybox), shown("absent", "registry.invalid/absent:1")}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "busybox", MountPath: "/all"},
		{Name: "busybox", MountPath: "/part", SubPath: "etc"},
	}
	lacks := *p.Spec.Containers[0].DeepCopy()
	lacks.Name, lacks.VolumeMounts = "lacks", []corev1.VolumeMount{{Name: "absent", MountPath: "/none"}}
	p.Spec.Containers = append(p.Spec.Containers, lacks)
	create(t, in, p)
	awaitPod(t, in, "shows", timeout, func(p *corev1.Pod) string {
		if p == nil || len(p.Status.ContainerStatuses) != 2 {
			return "the pod has no container statuses"
		}
		c, lacks := p.Status.ContainerStatuses[0].State, p.Status.ContainerStatuses[1].State
		if c.Running == nil || lacks.Waiting == nil || lacks.Waiting.Reason != "ErrImageNeverPull" {
			return "the states are " + c.String() + " and " + lacks.String()
		}
		return ""
	})
	out, err := cluster.Kubectl(t.Context(), "exec", "-n", in, "shows", "-c", "c", "--", "sh", "-c",
		"cmp /all/etc/passwd /etc/passwd && cmp /part/passwd /etc/passwd && ls /part && ! touch /all/new 2>/dev/null && echo same")
	if want := "group\npasswd\nsame\n"; err != nil || out != want {
		t.Errorf("the container sees %q, %v; want %q", out, err, want)
	}
}
