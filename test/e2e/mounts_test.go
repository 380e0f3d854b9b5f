package e2e

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestMounts checks in the kernel the options of a volumeMount: readOnly, recursiveReadOnly, mount
// propagation in both directions, and subPathExpr.
func TestMounts(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	dir := filepath.Join("/var/tmp", in)
	onNode := func(script string) {
		t.Helper()
		if out, err := node.Exec(t.Context(), "sh", "-c", "cd "+dir+" && "+script); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	if out, err := node.Exec(t.Context(), "sh", "-c", "mkdir "+dir+" && mount -t tmpfs tmpfs "+dir+" && mount --make-shared "+dir); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	onNode("mkdir below late inner && mount -t tmpfs tmpfs below")

	p := sleeper("mounts", node.Name())
	p.Spec.Volumes = []corev1.Volume{
		{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir, Type: ptr.To(corev1.HostPathDirectory)}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	c := &p.Spec.Containers[0]
	c.SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	c.Env = []corev1.EnvVar{{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: "host", MountPath: "/top", ReadOnly: true},
		{Name: "host", MountPath: "/all", ReadOnly: true, RecursiveReadOnly: ptr.To(corev1.RecursiveReadOnlyEnabled)},
		{Name: "host", MountPath: "/private"},
		{Name: "host", MountPath: "/follows", MountPropagation: ptr.To(corev1.MountPropagationHostToContainer)},
		{Name: "host", MountPath: "/both", MountPropagation: ptr.To(corev1.MountPropagationBidirectional)},
		{Name: "scratch", MountPath: "/scratch"},
		{Name: "scratch", MountPath: "/part", SubPathExpr: "of/$(POD)"},
	}
	create(t, in, p)
	running := awaitPod(t, in, "mounts", timeout, ready)

	for _, script := range []string{
		"! touch /top/new 2>/dev/null && touch /top/below/new",
		"! touch /all/new 2>/dev/null && ! touch /all/below/other 2>/dev/null && test -e /all/below/new",
		"echo x > /part/file && test \"$(cat /scratch/of/mounts/file)\" = x",
	} {
		inPod(t, node, in, "mounts", script)
	}
	onNode("mount -t tmpfs tmpfs late && touch late/here")
	inPod(t, node, in, "mounts", "test -e /follows/late/here && test -e /both/late/here && ! test -e /private/late/here")
	inPod(t, node, in, "mounts", "mount -t tmpfs tmpfs /both/inner && touch /both/inner/here && mount -t tmpfs tmpfs /follows/below && touch /follows/below/mine")
	onNode("test -e inner/here && ! test -e below/mine")

	for _, m := range running.Status.ContainerStatuses[0].VolumeMounts {
		if want := m.MountPath == "/all"; (ptr.Deref(m.RecursiveReadOnly, "") == corev1.RecursiveReadOnlyEnabled) != want {
			t.Errorf("status of mount %s: recursiveReadOnly %v", m.MountPath, ptr.Deref(m.RecursiveReadOnly, ""))
		}
	}
	deletePod(t, in, "mounts")
	onNode("test -e inner/here && test -e late/here && test -e below/new && umount inner late below")
	if out, err := node.Exec(t.Context(), "sh", "-c", "umount "+dir+" && rmdir "+dir); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
