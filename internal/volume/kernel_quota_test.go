package volume

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/quota"
	"swiftlet/internal/volume/quota/quotatest"
	"swiftlet/internal/volume/safepath"
	"swiftlet/test/poll"
)

// TestKernelTracksVolumes: the usage of a pod with a user namespace is tracked with project quotas, also
// by the next agent. The project is released with the pod, or when a killed agent restarts.
func TestKernelTracksVolumes(t *testing.T) {
	root, etc := filepath.Join(quotatest.Mount(t, "ext4"), "kubelet"), t.TempDir()
	n := newNodeAt(t, root)
	n.quotas = func() Quotas {
		p, err := quota.New(quota.Config{PodsDir: filepath.Join(root, "pods"), ListsDir: etc}, clock.RealClock{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	n.restart()
	pod := n.podNamed("apart", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	pod.Spec.HostUsers = ptr.To(false)
	for name, source := range map[string]v1.VolumeSource{
		"config": {ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "obj"}, DefaultMode: mode(0o644)}},
		"memory": {EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}},
		"secret": {Secret: &v1.SecretVolumeSource{SecretName: "obj", DefaultMode: mode(0o644)}},
	} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	n.objects.Register(pod)
	dir := n.mount(pod)
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		counted := map[string]quota.Usage{}
		for _, o := range n.MeasurableVolumes(pod.UID) {
			if o.QuotaUsage == nil {
				continue
			}
			if bytes, inodes, ok := o.QuotaUsage(); ok {
				counted[o.Name] = quota.Usage{Bytes: bytes, Inodes: inodes}
			}
		}
		if len(counted) != 2 || counted["vol"].Inodes != 2 || counted["vol"].Bytes < 1<<20 || counted["config"].Inodes < 5 {
			t.Errorf("%s: usage %+v", when, counted)
		}
	}
	check("after mount")
	n.restart()
	n.mount(pod)
	check("by the next agent")
	shared := n.podNamed("shared", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	n.mount(shared)
	if bytes, _, ok := n.MeasurableVolumes(shared.UID)[0].QuotaUsage(); ok {
		t.Errorf("the volume of a pod without a user namespace is tracked: %d bytes", bytes)
	}
	listed := func() int { return strings.Count(readFile(t, etc, "projects"), "\n") }
	if listed() != 2 {
		t.Errorf("listed:\n%s", readFile(t, etc, "projects"))
	}
	n.unmount(pod.UID)
	if listed() != 0 || readFile(t, etc, "projid") != "" {
		t.Errorf("after the pod: %s", readFile(t, etc, "projects"))
	}
	n.mount(pod)
	n.stop() // killed after all but the lists was removed
	dir = filepath.Join(root, "pods/apart")
	if err := errors.Join((&mounts.Kernel{}).UnmountBeneath(dir), safepath.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	if listed() != 2 {
		t.Errorf("listed:\n%s", readFile(t, etc, "projects"))
	}
	n.start()
	poll.Until(t, "the project to be released", func() bool { return listed() == 0 && readFile(t, etc, "projid") == "" })
}
