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

// A volume in trouble keeps its own pod waiting, which is told why, and no other. When the
// trouble is over the pod starts.

// TestFullVolume has no room for the files of a ConfigMap.
func TestFullVolume(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	source := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "late"}}}
	p := create(t, in, mounting(sleeper("troubled", node.Name()), "cm", source, ""))
	awaitEvent(t, in, "troubled", `MountVolume.SetUp failed for volume "cm" : configmap "late" not found`)

	disk := path.Join("/var/lib/kubelet/pods", string(p.UID), "volumes/kubernetes.io~configmap")
	inNode(t, node, "mkdir -p "+disk+" && mount -t tmpfs -o size=64k tmpfs "+disk)
	// Lazily, for the kubelet has been in there; in vain where it took the mount away itself.
	t.Cleanup(func() { _, _ = node.Exec(context.WithoutCancel(t.Context()), "umount", "-l", disk) })
	late := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Data: map[string]string{"key": strings.Repeat("x", 100<<10)}}
	if _, err := client().CoreV1().ConfigMaps(in).Create(t.Context(), late, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitTrouble(t, in, `MountVolume.SetUp failed for volume "cm" : `, "no space left on device")
	unharmed(t, in, node)
	inNode(t, node, "mount -o remount,size=1m "+disk)
	recovers(t, in)
}

// TestReadOnlyVolume has a folder to be made where nothing can be.
func TestReadOnlyVolume(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	disk := path.Join("/var/lib", in)
	inNode(t, node, "mkdir "+disk+" && mount -t tmpfs -o ro tmpfs "+disk)
	t.Cleanup(func() { inNode(t, node, "umount -l "+disk) })
	source := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: disk + "/new", Type: ptr.To(corev1.HostPathDirectoryOrCreate)}}
	create(t, in, mounting(sleeper("troubled", node.Name()), "data", source, ""))
	awaitTrouble(t, in, `MountVolume.SetUp failed for volume "data" : `, "read-only file system")
	unharmed(t, in, node)
	inNode(t, node, "mount -o remount,rw "+disk)
	recovers(t, in)
}

// TestHangingVolume is on a file system that never answers.
func TestHangingVolume(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	disk := path.Join("/var/lib", in)
	inNode(t, node, "mkdir -p "+disk+"/inside") // to be found when the mount is gone
	letGo := hang(t, node, disk)
	source := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: disk + "/inside", Type: ptr.To(corev1.HostPathDirectory)}}
	create(t, in, mounting(sleeper("troubled", node.Name()), "data", source, ""))
	if kubelet == bed.Ours { // the reference says nothing, ever
		awaitTrouble(t, in, `MountVolume.SetUp for volume "data" has not come back after 10s`)
	}
	unharmed(t, in, node)
	letGo()
	recovers(t, in)
}

// TestVolumeThatDies ceases to answer below a running pod. Whoever asks the node what is used
// is answered all the same.
func TestVolumeThatDies(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	folder := path.Join("/var/lib", in)
	inNode(t, node, "mkdir "+folder)
	claimed(t, in, "data", localVolume(node, folder))
	source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	p := startPod(t, in, mounting(sleeper("bereft", node.Name()), "data", source, ""))
	letGo := hang(t, node, path.Join("/var/lib/kubelet/pods", string(p.UID), "volumes/kubernetes.io~local-volume", in))
	for _, asked := range []string{"/stats/summary", "/metrics", "/stats/summary"} {
		began := time.Now()
		if code, text := askNode(t, node, "GET", asked); code != 200 {
			t.Errorf("%s: %d %s", asked, code, text)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s took %v", asked, took)
		}
	}
	letGo()
	remove(t, in, "bereft")
}

// hang mounts a FUSE file system that nobody serves, until let go.
func hang(t *testing.T, node *bed.Box, dir string) (letGo func()) {
	t.Helper()
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	mount := node.Command(t.Context(), "mount", "-i", "-t", "fuse", "-o", "fd=3,rootmode=40000,user_id=0,group_id=0", "hanging", dir)
	mount.ExtraFiles = []*os.File{fuse}
	if out, err := mount.CombinedOutput(); err != nil {
		t.Fatalf("mount a file system that hangs: %v\n%s", err, out)
	}
	letGo = func() {
		if fuse.Close() == nil { // the first time
			inNode(t, node, "umount -l "+dir)
		}
	}
	t.Cleanup(letGo)
	return letGo
}

// awaitTrouble waits for one event about the troubled pod that says all of it.
func awaitTrouble(t *testing.T, in string, said ...string) {
	t.Helper()
	eventually(t, usual, func() string {
		list, err := client().CoreV1().Events(in).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=troubled,reason=FailedMount"})
		if err != nil {
			return err.Error()
		}
		var messages []string
		for _, e := range list.Items {
			if containsAll(e.Message, said) {
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

// unharmed wants another pod of the node, with volumes of its own, to come and go while the
// troubled one waits.
func unharmed(t *testing.T, in string, node *bed.Box) {
	t.Helper()
	other := mounting(sleeper("other", node.Name()), "empty", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, "")
	startPod(t, in, other)
	remove(t, in, "other")
	waiting, err := client().CoreV1().Pods(in).Get(t.Context(), "troubled", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if waiting.Status.Phase != corev1.PodPending {
		t.Errorf("the pod with the volume in trouble is %s", waiting.Status.Phase)
	}
}

// recovers wants the pod, whose trouble is over, to start and to go.
func recovers(t *testing.T, in string) {
	t.Helper()
	awaitPod(t, in, "troubled", within(usual, 4*time.Minute), ready)
	remove(t, in, "troubled")
}

// inNode runs a script on the node and wants it to succeed.
func inNode(t *testing.T, node *bed.Box, script string) {
	t.Helper()
	// Not the test's own context: that is over when it cleans up.
	if out, err := node.Exec(context.WithoutCancel(t.Context()), "sh", "-c", script); err != nil {
		t.Errorf("on the node: %v\n%s", err, out)
	}
}
