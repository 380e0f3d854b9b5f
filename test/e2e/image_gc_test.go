package e2e

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

const (
	imageCount    = 30 // number of images on the disk
	imageName     = "registry.invalid/image"
	imageSize     = 2 << 20 // size of an image on the disk: compressed and unpacked
	highThreshold = 70
	lowThreshold  = 50
)

// smallImageDisk mounts a file system of 96 MB on /var/lib/containerd.
const smallImageDisk = `
truncate -s 96M /var/shelf.img
mkfs.ext4 -q -m 0 /var/shelf.img
mount -o loop /var/shelf.img /var/lib/containerd`

// TestImageGCOnSmallDisk: when the disk is full, image garbage collection removes as few unused images
// as needed. It keeps images that are too young, pinned or in use. The order of removal is tested in
// internal/image.
func TestImageGCOnSmallDisk(t *testing.T) {
	if kubelet == bed.Reference {
		t.Skip("the reference checks the disk every five minutes")
	}
	t.Parallel()
	in, node := clearedNamespace(t), fullDiskNode(t)
	if used := usedDisk(t, node); used < highThreshold {
		t.Fatalf("the disk is only %.1f%% full", used)
	}
	registry := privateImageFor(t, node)
	secret := registry.secret(t, in, "key")
	pull := func(name string, bytes int64) {
		t.Helper()
		layer, err := random.Layer(bytes, types.DockerLayer)
		if err != nil {
			t.Fatal(err)
		}
		create(t, in, podWithImage(name, node.Name(), registry.push(t, "team/"+name+":1", layer), corev1.PullIfNotPresent, secret))
		awaitPod(t, in, name, timeout, ready)
	}
	const thresholds = "imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 50\nimageMinimumGCAge: "
	configure(t, node, thresholds+"1h")
	awaitNodeEvent(t, node, "FreeDiskSpaceFailed", "Failed to free sufficient space by deleting unused images (freed 0 bytes)")
	create(t, in, sleeper("user", node.Name()))
	awaitPod(t, in, "user", timeout, ready)
	if left := countImages(t, node); left != imageCount {
		t.Fatalf("%d of %d images are left, though all are too young", left, imageCount)
	}

	// The age of images counts from the agent's start. The pull triggers another collection.
	configure(t, node, thresholds+"1ms")
	pull("small", 1<<10)
	left := awaitDiskUsage(t, node, imageCount)
	pull("big", 12<<20)
	left = awaitDiskUsage(t, node, left)
	removed := valueOf(scrape(t, node), `kubelet_image_garbage_collected_total{reason="space"}`)
	if want := imageCount - left; int(removed) != want {
		t.Errorf("the metric has %v removals, but %d images were removed", removed, want)
	}
	for _, name := range []string{imageName + ":0", images.Pause, images.Busybox} {
		if out, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "images", "ls", "-q", "name=="+name); err != nil || strings.TrimSpace(out) != name {
			t.Errorf("%s was removed: %s %v", name, out, err)
		}
	}
	for _, pod := range []string{"user", "small", "big"} {
		awaitPod(t, in, pod, timeout, ready)
	}
}

// fullDiskNode adds a node whose small disk is full of unused images, the first of them pinned. Its
// kubelet is not started.
func fullDiskNode(t *testing.T) *bed.Box {
	t.Helper()
	node := bareNode(t, "shelf")
	if err := node.StopContainerd(); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Exec(t.Context(), "sh", "-ec", smallImageDisk); err != nil {
		t.Fatal(err)
	}
	if err := node.StartContainerd(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := node.ImportImages(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := node.ImportImage(t.Context(), randomImages(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "images", "label", imageName+":0", "io.cri-containerd.pinned=pinned"); err != nil {
		t.Fatal(err)
	}
	return node
}

// randomImages returns an archive of images with one incompressible layer each.
func randomImages(t *testing.T) (archive string) {
	t.Helper()
	all := map[name.Tag]v1.Image{}
	for i := range imageCount {
		tag, err := name.NewTag(fmt.Sprintf("%s:%d", imageName, i))
		if err != nil {
			t.Fatal(err)
		}
		image, err := random.Image(imageSize/2, 1)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		config = config.DeepCopy()
		config.OS, config.Architecture = "linux", runtime.GOARCH
		if all[tag], err = mutate.ConfigFile(image, config); err != nil {
			t.Fatal(err)
		}
	}
	archive = filepath.Join(t.TempDir(), "images.tar")
	if err := tarball.MultiWriteToFile(archive, all); err != nil {
		t.Fatal(err)
	}
	return archive
}

// awaitDiskUsage waits until the disk usage is below the low threshold, checks that not too many images
// were removed, and returns how many are left.
func awaitDiskUsage(t *testing.T, node *bed.Box, before int) (left int) {
	t.Helper()
	eventually(t, timeout, func() string {
		if used := usedDisk(t, node); used > lowThreshold {
			return fmt.Sprintf("disk usage is %.1f%%", used)
		}
		return ""
	})
	left = countImages(t, node)
	if used := usedDisk(t, node); left == before || used+100*1.5*imageSize/(96<<20) < lowThreshold {
		t.Errorf("disk usage is %.1f%%, and %d of %d images are left: too many were removed", used, left, before)
	}
	return left
}

// usedDisk returns the usage of the image file system, in percent.
func usedDisk(t *testing.T, node *bed.Box) float64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(node.Inside("/var/lib/containerd"), &st); err != nil {
		t.Fatal(err)
	}
	return 100 - float64(st.Bavail)*100/float64(st.Blocks)
}

// countImages returns how many of the images are left.
func countImages(t *testing.T, node *bed.Box) int {
	t.Helper()
	out, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "images", "ls", "-q")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(out, imageName+":")
}

func awaitNodeEvent(t *testing.T, node *bed.Box, reason, text string) {
	t.Helper()
	eventually(t, timeout, func() string {
		list, err := client().CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + node.Name()})
		if err != nil {
			return err.Error()
		}
		var events []string
		for _, e := range list.Items {
			if e.Reason == reason && strings.Contains(e.Message, text) {
				return ""
			}
			events = append(events, e.Reason+": "+e.Message)
		}
		return fmt.Sprintf("events are %q", events)
	})
}
