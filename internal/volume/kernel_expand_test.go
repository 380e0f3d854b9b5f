package volume

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/volume/mounts"
)

// mayExpand reports whether this process may resize a mounted file system.
func mayExpand(t *testing.T) bool {
	t.Helper()
	for line := range strings.Lines(readFile(t, "/proc/self/status")) {
		if text, ok := strings.CutPrefix(line, "CapEff:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return set&(1<<unix.CAP_SYS_RESOURCE) != 0
		}
	}
	t.Fatal("no capabilities in /proc/self/status")
	return false
}

// TestKernelResizesFileSystem: a disk is enlarged while a pod uses it; with the next pod the mounted
// file system is resized for both.
func TestKernelResizesFileSystem(t *testing.T) {
	if !mayExpand(t) {
		t.Skip("no CAP_SYS_RESOURCE to resize a mounted file system; make test-cgroup2 has it")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		if out, err := exec.Command("modprobe", "loop").CombinedOutput(); err != nil {
			t.Fatalf("load loop module: %v: %s", err, out)
		}
	}
	n := newNode(t)
	device := disk(t)
	size := func(text string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceStorage: resource.MustParse(text)}
	}
	source := n.claimed(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: device}},
		func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
			c.Status.Capacity, pv.Spec.Capacity = size("16Mi"), size("16Mi")
		})
	dir := n.mount(n.podNamed("a", source))
	before, err := mounts.FilesystemUsage(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := strings.TrimSpace(readFile(t, "/sys/block", filepath.Base(device), "loop/backing_file"))
	if err := os.Truncate(file, 64<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("losetup", "--set-capacity", device).CombinedOutput(); err != nil {
		t.Fatalf("enlarge the disk: %v: %s", err, out)
	}
	pv, err := n.client.CoreV1().PersistentVolumes().Get(t.Context(), "pv", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pv = pv.DeepCopy()
	pv.Spec.Capacity = size("64Mi")
	if _, err := n.client.CoreV1().PersistentVolumes().Update(t.Context(), pv, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.mount(n.podNamed("b", source))
	after, err := mounts.FilesystemUsage(dir)
	if err != nil || after.CapacityBytes < 48<<20 || before.CapacityBytes > 16<<20 {
		t.Errorf("the file system had %d bytes and has %d (%v), of 16 and 64 MiB", before.CapacityBytes, after.CapacityBytes, err)
	}
	if !n.events.has(`FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "pv"`) {
		t.Errorf("events %q", n.events.recorded)
	}
	claims, err := n.client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "claim", metav1.GetOptions{})
	if err != nil || claims.Status.Capacity.Storage().String() != "64Mi" {
		t.Errorf("the claim has %v, %v", claims.Status, err)
	}
}
