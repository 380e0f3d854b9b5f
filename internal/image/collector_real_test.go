package image

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	registryv1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/cri"
	"swiftlet/test/images"
	"swiftlet/test/poll"
	"swiftlet/test/realcri"
)

// TestRealCollectToLowThreshold fills a small disk with the images of a real containerd: the
// least recently used are removed until the usage is below the low threshold, and no more.
func TestRealCollectToLowThreshold(t *testing.T) {
	disk := smallDisk(t, 96<<20)
	t.Setenv("TMPDIR", disk)
	runtime := realcri.Start(t)
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: runtime.Endpoint(), RequestTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ids := importImages(t, runtime, client, 30, 1<<20)

	const low, high = 50, 70
	clock := clocktesting.NewFakeClock(time.Unix(1e6, 0))
	var seen events
	var used []string
	c, err := NewCollector(CollectorConfig{High: high, Low: low, MinAge: 2 * time.Minute}, CollectorDeps{
		Images: client, InUse: func(context.Context) ([]string, error) { return used, nil }, Events: &seen,
		Node: &v1.ObjectReference{Kind: "Node", Name: "n"}, Clock: clock, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	// Images are used in another order than their names'; image 7 is used first and last, and
	// one is in use all the time.
	order := slices.Clone(ids)
	slices.Reverse(order)
	order = append(slices.DeleteFunc(order, func(id string) bool { return id == ids[7] }), ids[7])
	for _, id := range append([]string{ids[7]}, order...) {
		clock.Step(time.Minute)
		c.MarkUsed(id)
		used = []string{id}
		if _, err := c.findUnused(t.Context(), clock.Now()); err != nil {
			t.Fatal(err)
		}
	}
	held := order[0]
	used = []string{held}
	clock.Step(time.Hour)
	before, err := c.disk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if before.used() < high {
		t.Fatalf("disk usage %d%%: the disk is too large for this test", before.used())
	}
	if err := c.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}

	after, err := c.disk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := present(t, client, ids)
	removed := len(ids) - len(left)
	want := slices.Concat([]string{held}, order[1+removed:])
	slices.Sort(left)
	slices.Sort(want)
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("removed others than the least recently used: -want +got\n%s", diff)
	}
	// One removal less would not have sufficed.
	one := (int64(after.Available) - int64(before.Available)) / int64(max(removed, 1))
	if excess := after.excess(low); excess > 0 || excess < -one {
		t.Errorf("%d%% full afterwards, %d bytes away from %d%%; an image has %d", after.used(), excess, low, one)
	}
	t.Logf("%d%% full before, %d%% after, %d of %d images removed", before.used(), after.used(), removed, len(ids))
	if len(seen.seen) > 0 {
		t.Errorf("events: %v", seen.seen)
	}
	// The pause image is pinned; busybox was never used and was removed first.
	for name, there := range map[string]bool{images.Pause: true, images.Busybox: false} {
		if found, err := client.ImageStatus(t.Context(), &runtimeapi.ImageSpec{Image: name}, false); err != nil || (found != nil) != there {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

// smallDisk mounts a new file system of this size.
func smallDisk(t *testing.T, bytes int64) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	dir, err := os.MkdirTemp("", "disk")
	if err != nil {
		t.Fatal(err)
	}
	file, mountpoint := filepath.Join(dir, "file"), filepath.Join(dir, "mnt")
	f, err := os.Create(file)
	if err == nil {
		err = f.Truncate(bytes)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := os.Mkdir(mountpoint, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		run(t, "umount", mountpoint)
		_ = os.RemoveAll(dir)
	})
	run(t, "mkfs.ext4", "-q", "-m", "0", file)
	run(t, "mount", "-o", "loop", file, mountpoint)
	return mountpoint
}

func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// importImages imports images of one layer each into the runtime.
func importImages(t *testing.T, runtime *realcri.Runtime, client *cri.Client, count int, bytes int64) []string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "images")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	archive, all := filepath.Join(dir, "images.tar"), map[name.Tag]registryv1.Image{}
	var names []string
	for n := range count {
		tag, err := name.NewTag(fmt.Sprintf("registry.invalid/image:%d", n))
		if err != nil {
			t.Fatal(err)
		}
		names, all[tag] = append(names, tag.Name()), randomImage(t, bytes)
	}
	if err := tarball.MultiWriteToFile(archive, all); err != nil {
		t.Fatal(err)
	}
	runtime.Import(archive)
	var ids []string
	for _, name := range names {
		ids = append(ids, awaitImage(t, client, name))
	}
	return ids
}

// awaitImage waits until CRI lists an image that was imported without CRI.
func awaitImage(t *testing.T, client *cri.Client, name string) (id string) {
	t.Helper()
	poll.Until(t, "image "+name+" to appear", func() bool {
		found, err := client.ImageStatus(t.Context(), &runtimeapi.ImageSpec{Image: name}, false)
		if err != nil {
			t.Fatal(err)
		}
		id = found.GetId()
		return found != nil
	})
	return id
}

// randomImage returns an image of one layer of incompressible data.
func randomImage(t *testing.T, bytes int64) registryv1.Image {
	t.Helper()
	image, err := random.Image(bytes, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", goruntime.GOARCH
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

func present(t *testing.T, client *cri.Client, ids []string) []string {
	t.Helper()
	all, err := client.ListImages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, i := range all {
		if slices.Contains(ids, i.Id) {
			left = append(left, i.Id)
		}
	}
	return left
}
