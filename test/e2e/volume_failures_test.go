package e2e

import (
	"context"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

// In these tests a volume fails. Only its own pod waits, with an event that has the reason. When the failure is
// over, the pod starts.

// TestFullVolume: there is no space for the files of a ConfigMap.
func TestFullVolume(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	source := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "late"}}}
	p := create(t, in, addVolume(sleeper("troubled", node.Name()), "cm", source, ""))
	awaitEvent(t, in, "troubled", `MountVolume.SetUp failed for volume "cm" : configmap "late" not found`)

	disk := path.Join("/var/lib/kubelet/pods", string(p.UID), "volumes/kubernetes.io~configmap")
	inNode(t, node, "mkdir -p "+disk+" && mount -t tmpfs -o size=64k tmpfs "+disk)
	// Lazily, because the kubelet may use it. It fails if the kubelet has unmounted it.
	t.Cleanup(func() { _, _ = node.Exec(context.WithoutCancel(t.Context()), "umount", "-l", disk) })
	late := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Data: map[string]string{"key": strings.Repeat("x", 100<<10)}}
	if _, err := client().CoreV1().ConfigMaps(in).Create(t.Context(), late, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitMountEvent(t, in, `MountVolume.SetUp failed for volume "cm" : `, "no space left on device")
	checkOtherPodRuns(t, in, node)
	inNode(t, node, "mount -o remount,size=1m "+disk)
	checkRecovers(t, in)
}

// TestReadOnlyVolume: a directory must be created on a read-only file system.
func TestReadOnlyVolume(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	disk := path.Join("/var/lib", in)
	inNode(t, node, "mkdir "+disk+" && mount -t tmpfs -o ro tmpfs "+disk)
	t.Cleanup(func() { inNode(t, node, "umount -l "+disk) })
	source := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: disk + "/new", Type: ptr.To(corev1.HostPathDirectoryOrCreate)}}
	create(t, in, addVolume(sleeper("troubled", node.Name()), "data", source, ""))
	awaitMountEvent(t, in, `MountVolume.SetUp failed for volume "data" : `, "read-only file system")
	checkOtherPodRuns(t, in, node)
	inNode(t, node, "mount -o remount,rw "+disk)
	checkRecovers(t, in)
}

// TestHangingVolume: the volume is on a file system that hangs.
func TestHangingVolume(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	disk := path.Join("/var/lib", in)
	inNode(t, node, "mkdir -p "+disk+"/inside") // found when the mount is gone
	release := hang(t, node, disk)
	source := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: disk + "/inside", Type: ptr.To(corev1.HostPathDirectory)}}
	create(t, in, addVolume(sleeper("troubled", node.Name()), "data", source, ""))
	if kubelet == bed.Ours { // the reference sends no event
		awaitMountEvent(t, in, `MountVolume.SetUp for volume "data" has not come back after 10s`)
	}
	checkOtherPodRuns(t, in, node)
	release()
	checkRecovers(t, in)
}

// TestVolumeHangsUnderRunningPod: statistics and metrics of the node still work.
func TestVolumeHangsUnderRunningPod(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	folder := path.Join("/var/lib", in)
	inNode(t, node, "mkdir "+folder)
	createVolumeAndClaim(t, in, "data", localVolume(node, folder))
	source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	p := startPod(t, in, addVolume(sleeper("bereft", node.Name()), "data", source, ""))
	release := hang(t, node, path.Join("/var/lib/kubelet/pods", string(p.UID), "volumes/kubernetes.io~local-volume", in))
	for _, path := range []string{"/stats/summary", "/metrics", "/stats/summary"} {
		began := time.Now()
		if code, text := requestNode(t, node, "GET", path); code != 200 {
			t.Errorf("%s: %d %s", path, code, text)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s took %v", path, took)
		}
	}
	release()
	deletePod(t, in, "bereft")
}

// hang mounts a FUSE file system without a server, until the returned function is called.
func hang(t *testing.T, node *bed.Box, dir string) (release func()) {
	t.Helper()
	fuse := mountFUSE(t, node, dir)
	release = func() {
		if fuse.Close() == nil { // only the first call succeeds
			inNode(t, node, "umount -l "+dir)
		}
	}
	t.Cleanup(release)
	return release
}

// mountFUSE mounts a FUSE file system and returns the file that its server reads requests from.
func mountFUSE(t *testing.T, node *bed.Box, dir string) *os.File {
	t.Helper()
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	mount := node.Command(t.Context(), "mount", "-i", "-t", "fuse", "-o", "fd=3,rootmode=40000,user_id=0,group_id=0", "hanging", dir)
	mount.ExtraFiles = []*os.File{fuse}
	if out, err := mount.CombinedOutput(); err != nil {
		t.Fatalf("mount FUSE file system: %v\n%s", err, out)
	}
	return fuse
}

// awaitMountEvent waits for an event of the pod "troubled" that contains all these texts.
func awaitMountEvent(t *testing.T, in string, texts ...string) {
	t.Helper()
	eventually(t, timeout, func() string {
		list, err := client().CoreV1().Events(in).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=troubled,reason=FailedMount"})
		if err != nil {
			return err.Error()
		}
		var messages []string
		for _, e := range list.Items {
			if containsAll(e.Message, texts) {
				return ""
			}
			messages = append(messages, e.Message)
		}
		return "events of the pod:\n" + strings.Join(messages, "\n")
	})
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// checkOtherPodRuns checks that another pod with a volume starts and stops while the pod "troubled" waits.
func checkOtherPodRuns(t *testing.T, in string, node *bed.Box) {
	t.Helper()
	other := addVolume(sleeper("other", node.Name()), "empty", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, "")
	startPod(t, in, other)
	deletePod(t, in, "other")
	waiting, err := client().CoreV1().Pods(in).Get(t.Context(), "troubled", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if waiting.Status.Phase != corev1.PodPending {
		t.Errorf("the pod with the failing volume is %s", waiting.Status.Phase)
	}
}

// checkRecovers checks that the pod starts, and deletes it.
func checkRecovers(t *testing.T, in string) {
	t.Helper()
	awaitPod(t, in, "troubled", timeoutFor(timeout, 4*time.Minute), ready)
	deletePod(t, in, "troubled")
}

// inNode runs a script on the node; it must succeed.
func inNode(t *testing.T, node *bed.Box, script string) {
	t.Helper()
	// Without cancellation: the test's context is cancelled before cleanup.
	if out, err := node.Exec(context.WithoutCancel(t.Context()), "sh", "-c", script); err != nil {
		t.Errorf("on the node: %v\n%s", err, out)
	}
}
