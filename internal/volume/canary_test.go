package volume

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/mounts"
)

// canary creates a directory with a file that must never be removed.
func canary(t *testing.T) (dir string, alive func() bool) {
	dir = t.TempDir()
	file := filepath.Join(dir, "canary")
	if err := os.WriteFile(file, []byte("alive"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, reads("alive", file)
}

func bind(t *testing.T, source, target string) {
	t.Helper()
	if err := os.MkdirAll(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
}

// TestUnmountNeverDeletesThroughAMount has foreign mount points in the pod's directory.
func TestUnmountNeverDeletesThroughAMount(t *testing.T) {
	for _, place := range []string{
		"volumes/kubernetes.io~empty-dir/vol/nfs",
		"volumes/kubernetes.io~empty-dir/vol",
		"volumes/kubernetes.io~nfs/pv",
		"volume-subpaths/vol/c/0",
	} {
		t.Run(place, func(t *testing.T) {
			n := newNode(t)
			n.mount(n.pod(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}))
			dir, alive := canary(t)
			bind(t, dir, filepath.Join(n.root, "pods/uid-1", place))
			if err := n.Unmount(t.Context(), "uid-1"); err != nil {
				t.Errorf("unmount: %v", err)
			}
			if !alive() {
				t.Fatal("the canary file was removed")
			}
			if left, _ := n.MountedPods(); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestRemoveStopsAtAMount: RemovePodDir does not unmount.
func TestRemoveStopsAtAMount(t *testing.T) {
	n := newNode(t)
	dir, alive := canary(t)
	bind(t, dir, filepath.Join(n.root, "pods/uid-1/etc/held"))
	if err := n.RemovePodDir("uid-1"); err == nil {
		t.Error("removed a pod's directory with a mount in it")
	}
	if !alive() {
		t.Error("the canary file was removed")
	}
	if err := (&mounts.Kernel{}).UnmountBeneath(filepath.Join(n.root, "pods")); err != nil {
		t.Fatal(err)
	}
	if err := n.RemovePodDir("uid-1"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(n.root, "pods/uid-1")); err == nil {
		t.Error("the directory is still there")
	}
}

// TestBusyMountKeepsItsData: a failed unmount removes nothing.
func TestBusyMountKeepsItsData(t *testing.T) {
	n := newNode(t)
	vol := n.mount(n.pod(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}))
	file, err := os.Create(filepath.Join(vol, "open"))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Unmount(t.Context(), "uid-1"); err == nil {
		t.Error("a busy mount was unmounted")
	}
	if _, err := os.Lstat(filepath.Join(vol, "open")); err != nil {
		t.Errorf("the data beneath a busy mount: %v", err)
	}
	file.Close()
	if err := n.Unmount(t.Context(), "uid-1"); err != nil {
		t.Errorf("unmount once it is not busy: %v", err)
	}
}

func TestLinksAreRemovedNotFollowed(t *testing.T) {
	n := newNode(t)
	vol := n.mount(n.pod(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}))
	dir, alive := canary(t)
	if err := os.Symlink(dir, filepath.Join(vol, "link")); err != nil {
		t.Fatal(err)
	}
	if err := n.Unmount(t.Context(), "uid-1"); err != nil {
		t.Fatal(err)
	}
	if !alive() {
		t.Error("the canary file was removed")
	}
}
