package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/safepath"
)

// A pod that mounts the directory of the logs may put a link in place of that of a container. The removal of its logs
// must not follow it.
func TestRemoveLogFilesFollowsNoLink(t *testing.T) {
	for _, replaced := range []string{"ns_p_u/c", "ns_p_u"} {
		b, elsewhere := newBench(t, nil), t.TempDir()
		victims := []string{filepath.Join(elsewhere, "0.log"), filepath.Join(elsewhere, "c", "0.log.1")}
		for _, file := range victims {
			writeFile(t, file, "precious")
		}
		link := filepath.Join(b.cfg.PodLogsDir, replaced)
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(elsewhere, link)); err != nil {
			t.Fatal(err)
		}
		c := &pod.Container{ID: "x", Name: "c", LogPath: filepath.Join(b.cfg.PodLogsDir, "ns_p_u", "c", "0.log")}
		if err := b.removeContainer(t.Context(), pod.Ref{Namespace: "ns", Name: "p", UID: "u"}, c); err != nil {
			t.Errorf("%s is a link: %v", replaced, err)
		}
		for _, file := range victims {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s is a link: %v", replaced, err)
			}
		}
	}
}

// Nothing is removed through a mount point, also in the directory of the logs.
func TestRemoveLogsEntersNoMount(t *testing.T) {
	b := newBench(t, nil)
	ref := pod.Ref{Namespace: "ns", Name: "p", UID: "u"}
	point := filepath.Join(b.podLogDir(ref), "c")
	if err := os.MkdirAll(point, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount")
	}
	if err := unix.Mount("tmpfs", point, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(point, unix.MNT_DETACH) }()
	writeFile(t, filepath.Join(point, "file"), "of another program")
	var mounted *safepath.MountPointError
	if err := b.RemoveLogs(ref); !errors.As(err, &mounted) {
		t.Errorf("%v, want an error that names the mount point", err)
	}
	if _, err := os.Stat(filepath.Join(point, "file")); err != nil {
		t.Errorf("removed through the mount point: %v", err)
	}
	if err := unix.Unmount(point, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.RemoveLogs(ref); err != nil {
		t.Error(err)
	}
}

// A tree that is deeper than a path can name is removed.
func TestRemoveLogsOfDeepTree(t *testing.T) {
	b := newBench(t, nil)
	ref := pod.Ref{Namespace: "ns", Name: "p", UID: "u"}
	if err := os.MkdirAll(b.podLogDir(ref), 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(b.podLogDir(ref), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", 255)
	for range 200 {
		if err := unix.Mkdirat(fd, name, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err = errors.Join(err, unix.Close(fd)); err != nil {
			t.Fatal(err)
		}
		fd = next
	}
	_ = unix.Close(fd)
	if err := b.RemoveLogs(ref); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(b.podLogDir(ref)); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
}
