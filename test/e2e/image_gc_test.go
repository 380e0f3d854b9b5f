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
	shelfImages = 30 // images on the disk
	shelfName   = "registry.invalid/image"
	oneGoes     = 2 << 20 // bytes of an image on the disk: as it was fetched and as it was unpacked
	fullAt      = 70
	untilAt     = 50
)

// smallShelf has the node keep its images on a file system of 96 MB.
const smallShelf = `
truncate -s 96M /var/shelf.img
mkfs.ext4 -q -m 0 /var/shelf.img
mount -o loop /var/shelf.img /var/lib/containerd`

// Images that nobody uses go when the disk is full, and as few as will do. One that is too
// young, pinned or in use stays. Which of them go first is for TestThirtyImagesOnASmallDisk.
func TestImagesOnASmallDisk(t *testing.T) {
	if kubelet == bed.Reference {
		t.Skip("it looks at the disk every five minutes")
	}
	t.Parallel()
	in, node := clearedNamespace(t), shelfNode(t)
	if used := usedDisk(t, node); used < fullAt {
		t.Fatalf("the disk is %.1f%% full: too large for this test", used)
	}
	registry := privateImageFor(t, node)
	secret := registry.secret(t, in, "key")
	pull := func(name string, bytes int64) {
		t.Helper()
		layer, err := random.Layer(bytes, types.DockerLayer)
		if err != nil {
			t.Fatal(err)
		}
		create(t, in, asks(name, node.Name(), registry.push(t, "team/"+name+":1", layer), corev1.PullIfNotPresent, secret))
		awaitPod(t, in, name, usual, ready)
	}
	const thresholds = "imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 50\nimageMinimumGCAge: "
	configure(t, node, thresholds+"1h")
	awaitNodeEvent(t, node, "FreeDiskSpaceFailed", "Failed to free sufficient space by deleting unused images (freed 0 bytes)")
	create(t, in, sleeper("user", node.Name()))
	awaitPod(t, in, "user", usual, ready)
	if left := onShelf(t, node); left != shelfImages {
		t.Fatalf("%d of %d are left, and all are young", left, shelfImages)
	}

	// What is on the node when the agent starts is new to it; the pull that follows has it
	// look again.
	configure(t, node, thresholds+"1ms")
	pull("small", 1<<10)
	left := awaitRoom(t, node, shelfImages)
	pull("big", 12<<20)
	left = awaitRoom(t, node, left)
	removed := valueOf(scrape(t, node), `kubelet_image_garbage_collected_total{reason="space"}`)
	if want := shelfImages - left; int(removed) != want {
		t.Errorf("%v removals are counted, %d images went", removed, want)
	}
	for _, name := range []string{shelfName + ":0", images.Pause, images.Busybox} {
		if out, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "images", "ls", "-q", "name=="+name); err != nil || strings.TrimSpace(out) != name {
			t.Errorf("%s is gone: %s %v", name, out, err)
		}
	}
	for _, pod := range []string{"user", "small", "big"} {
		awaitPod(t, in, pod, usual, ready)
	}
}

// shelfNode is one whose small disk is full of images that nobody uses, the first of them
// pinned. Its kubelet does not run yet.
func shelfNode(t *testing.T) *bed.Box {
	t.Helper()
	node := bareNode(t, "shelf")
	if err := node.StopContainerd(); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Exec(t.Context(), "sh", "-ec", smallShelf); err != nil {
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
	if _, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "images", "label", shelfName+":0", "io.cri-containerd.pinned=pinned"); err != nil {
		t.Fatal(err)
	}
	return node
}

// randomImages are in one archive, with one layer each that cannot be compressed.
func randomImages(t *testing.T) (archive string) {
	t.Helper()
	all := map[name.Tag]v1.Image{}
	for i := range shelfImages {
		tag, err := name.NewTag(fmt.Sprintf("%s:%d", shelfName, i))
		if err != nil {
			t.Fatal(err)
		}
		image, err := random.Image(oneGoes/2, 1)
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

// awaitRoom waits until there is room on the disk, wants no image to be gone that need not
// be, and returns how many are left.
func awaitRoom(t *testing.T, node *bed.Box, before int) (left int) {
	t.Helper()
	eventually(t, usual, func() string {
		if used := usedDisk(t, node); used > untilAt {
			return fmt.Sprintf("%.1f%% of the disk are used", used)
		}
		return ""
	})
	left = onShelf(t, node)
	if used := usedDisk(t, node); left == before || used+100*1.5*oneGoes/(96<<20) < untilAt {
		t.Errorf("%.1f%% of the disk are used, and %d of %d images are left: too many went", used, left, before)
	}
	return left
}

// usedDisk is how full the disk with the images is, in percent.
func usedDisk(t *testing.T, node *bed.Box) float64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(node.Inside("/var/lib/containerd"), &st); err != nil {
		t.Fatal(err)
	}
	return 100 - float64(st.Bavail)*100/float64(st.Blocks)
}

// onShelf is how many of the images are left.
func onShelf(t *testing.T, node *bed.Box) int {
	t.Helper()
	out, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "images", "ls", "-q")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(out, shelfName+":")
}

func awaitNodeEvent(t *testing.T, node *bed.Box, reason, text string) {
	t.Helper()
	eventually(t, usual, func() string {
		list, err := client().CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + node.Name()})
		if err != nil {
			return err.Error()
		}
		var told []string
		for _, e := range list.Items {
			if e.Reason == reason && strings.Contains(e.Message, text) {
				return ""
			}
			told = append(told, e.Reason+": "+e.Message)
		}
		return fmt.Sprintf("told %q", told)
	})
}
