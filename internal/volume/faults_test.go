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

// smallDisk is a file system of 256 KiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// mountsAfter starts a mount that fails, waits for the event, calls mend and waits for the mount.
func mountsAfter(t *testing.T, n *node, p *v1.Pod, recorded string, mend func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { _, err := n.Mount(t.Context(), p); done <- err }()
	poll.Until(t, "the event", func() bool { return n.events.has(recorded) })
	if err := mend(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testTimeout):
		t.Error("not mounted after the fault was fixed")
	}
}

func TestFullDisk(t *testing.T) {
	n := newNodeAt(t, smallDisk(t))
	before := n.mount(n.podNamed("before", configMapSource("obj", false)))
	full := filepath.Join(n.root, "full")
	if err := fill(full); err != nil {
		t.Fatal(err)
	}
	recorded := `FailedMount: MountVolume.SetUp failed for volume "vol" : `
	mountsAfter(t, n, n.podNamed("after", configMapSource("obj", false)), recorded, func() error {
		if !n.events.has("no space left on device") {
			t.Errorf("events: %q", n.events.recorded)
		}
		if got := readFile(t, before, "key"); got != "value" {
			t.Errorf("another pod's file holds %q", got)
		}
		return os.Remove(full)
	})
}

// fill uses all space that is left.
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
	mountsAfter(t, n, n.podNamed("after", configMapSource("obj", false)), "read-only file system", func() error {
		if got := readFile(t, before, "key"); got != "value" {
			t.Errorf("another pod's file holds %q", got)
		}
		return remount(0)
	})
}

// hungMount mounts a file system that hangs until release is called.
func hungMount(t *testing.T) (dir string, release func()) {
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
	release = func() {
		if open {
			open = false
			_ = unix.Close(fuse)
			_ = unix.Unmount(dir, unix.MNT_DETACH)
		}
	}
	t.Cleanup(release)
	return dir, release
}

// TestHangingFileSystem: other pods are not affected.
func TestHangingFileSystem(t *testing.T) {
	n := newNode(t)
	n.cfg.MountTimeout, n.cfg.HangTimeout = 2*time.Second, 100*time.Millisecond
	dir, release := hungMount(t)
	stuck := n.podNamed("stuck", v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{
		Path: filepath.Join(dir, "inside"), Type: ptr.To(v1.HostPathDirectory)}})
	done := make(chan error, 1)
	go func() { _, err := n.Mount(t.Context(), stuck); done <- err }()
	poll.Until(t, "the event of the hang", func() bool {
		return n.events.has(`FailedMount: MountVolume.SetUp for volume "vol" has not come back after 100ms`)
	})
	n.mount(n.podNamed("other", configMapSource("obj", false)))
	n.unmount("other")
	select {
	case err := <-done:
		if err == nil {
			t.Error("mounted from a file system that hangs")
		}
	case <-time.After(testTimeout):
		t.Fatal("the mount outlasts its deadline")
	}
	want := "FailedMount: Unable to attach or mount volumes: unmounted volumes=[vol], unattached volumes=[], failed to process volumes=[]: context deadline exceeded"
	if !n.events.has(want) {
		t.Errorf("events %q, want %s", n.events.recorded, want)
	}
	release()
	n.unmount("stuck")
}
