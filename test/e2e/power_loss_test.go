package e2e

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
	"swiftlet/test/crashfs"
	"swiftlet/test/trust/tally"
)

// TestPowerLossOfNode cuts the power of a node while a pod runs, one starts and one stops, and boots it with
// what the disk of the agent's root directory then has. SWIFTLET_POWER_LOSSES is the number of cuts, each at
// another operation; one cut unless it is set.
func TestPowerLossOfNode(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("the reference is not tested for power losses")
	}
	t.Parallel()
	cuts := 1
	if text := os.Getenv("SWIFTLET_POWER_LOSSES"); text != "" {
		var err error
		if cuts, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	counts := tally.New(t, "power-loss")
	for cut := range cuts {
		operation, loss := 5+7*cut, crashfs.Losses[cut%len(crashfs.Losses)]
		counts.Fault(t.Run(strconv.Itoa(operation), func(t *testing.T) { // a namespace has the test's name
			losePower(t, fmt.Sprintf("cut-%d", cut), operation, loss)
		}))
	}
}

func losePower(t *testing.T, name string, operation int, loss crashfs.Loss) {
	disk := crashfs.Mount(t)
	node := bareNode(t, name)
	root := node.Path("/var/lib/kubelet")
	bind(t, disk.Dir, root)
	if err := node.Reboot(t.Context()); err != nil { // with that disk
		t.Fatal(err)
	}
	startKubelet(t, node, exclusiveConfig)
	space := namespace(t)
	startPod(t, space, withEmptyDir(sleeper("runs", node.Name())))
	startPod(t, space, sleeper("stops", node.Name()))

	disk.CutAt(disk.Tried() + operation)
	create(t, space, withEmptyDir(sleeper("starts", node.Name())))
	pods := client().CoreV1().Pods(space)
	if err := pods.Delete(t.Context(), "stops", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); !disk.IsOff() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	after := t.TempDir()
	if err := disk.Build(after, loss); err != nil {
		t.Fatal(err)
	}
	t.Logf("the power is off: %v, after %d operations; %s", disk.IsOff(), len(disk.Log()), loss)
	bind(t, after, root)
	if err := node.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	startKubelet(t, node, exclusiveConfig)
	for _, name := range []string{"runs", "starts"} {
		awaitPod(t, space, name, 2*timeout, func(p *corev1.Pod) string {
			if p.Status.Phase == corev1.PodFailed {
				t.Fatalf("pod %s failed: %s", name, p.Status.Message)
			}
			return ready(p)
		})
	}
	eventually(t, 2*timeout, func() string {
		if _, err := pods.Get(t.Context(), "stops", metav1.GetOptions{}); err == nil {
			return "the deleted pod exists"
		}
		return ""
	})
	if left, _ := node.Exec(t.Context(), "sh", "-c", "cd /var/lib/kubelet; ls -d *.bad .[a-z]*.[0-9]* 2>/dev/null"); left != "" {
		t.Errorf("files left: %s", left)
	}
}

// bind mounts a directory at another for the rest of the test. A box sees it from its next start on.
func bind(t *testing.T, from, at string) {
	t.Helper()
	if err := unix.Mount(from, at, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// withEmptyDir adds a volume on the agent's disk.
func withEmptyDir(p *corev1.Pod) *corev1.Pod {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
	return p
}
