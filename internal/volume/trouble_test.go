package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/poll"
)

// smallDisk is a directory with room for very little.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// heals mounts a pod that cannot be, waits for the event that says so, mends the trouble
// and waits for the mount.
func heals(t *testing.T, n *node, p *v1.Pod, said string, mend func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { _, err := n.Mount(t.Context(), p); done <- err }()
	poll.Until(t, "the event", func() bool { return n.events.has(said) })
	if err := mend(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("not mounted after the trouble was over")
	}
}

func TestFullDisk(t *testing.T) {
	n := newNodeAt(t, smallDisk(t))
	before := n.mount(n.podNamed("before", configMapSource("obj", false)))
	full := filepath.Join(n.root, "full")
	if err := fill(full); err != nil {
		t.Fatal(err)
	}
	said := `FailedMount: MountVolume.SetUp failed for volume "vol" : `
	heals(t, n, n.podNamed("after", configMapSource("obj", false)), said, func() error {
		if !n.events.has("no space left on device") {
			t.Errorf("events: %q", n.events.said)
		}
		if got := readFile(t, before, "key"); got != "value" {
			t.Errorf("another pod's file holds %q", got)
		}
		return os.Remove(full)
	})
}

// fill takes all room that is left.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 4096; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	return nil
}

func TestReadOnlyDisk(t *testing.T) {
	n := newNodeAt(t, smallDisk(t))
	before := n.mount(n.podNamed("before", configMapSource("obj", false)))
	remount := func(flags uintptr) error { return unix.Mount("", n.root, "", unix.MS_REMOUNT|flags, "") }
	if err := remount(unix.MS_RDONLY); err != nil {
		t.Fatal(err)
	}
	heals(t, n, n.podNamed("after", configMapSource("obj", false)), "read-only file system", func() error {
		if got := readFile(t, before, "key"); got != "value" {
			t.Errorf("another pod's file holds %q", got)
		}
		return remount(0)
	})
}

// hungMount mounts a file system that never answers, until let go.
func hungMount(t *testing.T) (dir string, letGo func()) {
	t.Helper()
	dir = t.TempDir()
	fuse, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse)
	if err := unix.Mount("fuse", dir, "fuse", 0, options); err != nil {
		t.Fatal(err)
	}
	open := true
	letGo = func() {
		if open {
			open = false
			_ = unix.Close(fuse)
			_ = unix.Unmount(dir, unix.MNT_DETACH)
		}
	}
	t.Cleanup(letGo)
	return dir, letGo
}

// TestFileSystemThatHangs: whoever asks it waits in the kernel, and nobody else does.
func TestFileSystemThatHangs(t *testing.T) {
	n := newNode(t)
	n.cfg.MountTimeout, n.cfg.HangTimeout = 2*time.Second, 100*time.Millisecond
	dir, letGo := hungMount(t)
	stuck := n.podNamed("stuck", v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{
		Path: filepath.Join(dir, "inside"), Type: ptr.To(v1.HostPathDirectory)}})
	done := make(chan error, 1)
	go func() { _, err := n.Mount(t.Context(), stuck); done <- err }()
	poll.Until(t, "the word that it hangs", func() bool {
		return n.events.has(`FailedMount: MountVolume.SetUp for volume "vol" has not come back after 100ms`)
	})
	n.mount(n.podNamed("other", configMapSource("obj", false)))
	n.unmount("other")
	select {
	case err := <-done:
		if err == nil {
			t.Error("mounted from a file system that hangs")
		}
	case <-time.After(patience):
		t.Fatal("the mount outlasts its deadline")
	}
	want := "FailedMount: Unable to attach or mount volumes: unmounted volumes=[vol], unattached volumes=[], failed to process volumes=[]: context deadline exceeded"
	if !n.events.has(want) {
		t.Errorf("events %q, want %s", n.events.said, want)
	}
	letGo()
	n.unmount("stuck")
}
