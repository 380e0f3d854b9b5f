package mounts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"swiftlet/internal/volume/privatens"
)

func TestMain(m *testing.M) { privatens.Main(m) }

func options(t *testing.T, point string) string {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); f[1] == point {
			return f[3]
		}
	}
	return ""
}

func TestTmpfs(t *testing.T) {
	k, dir := &Kernel{}, t.TempDir()
	if err := k.Tmpfs(dir, 16<<20); err != nil {
		t.Fatal(err)
	}
	got := options(t, dir)
	if !strings.HasPrefix(got, "rw,relatime,size=16384k") {
		t.Errorf("options %q", got)
	}
	if !k.noswapRefused.Load() && !strings.Contains(got, "noswap") {
		t.Errorf("options %q: it may be swapped", got)
	}
	if err := k.Unmount(dir); err != nil {
		t.Error(err)
	}
	if err := k.Unmount(dir); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

func TestMounted(t *testing.T) {
	k, dir := &Kernel{}, t.TempDir()
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	is := func(want bool) {
		t.Helper()
		if got, err := k.Mounted(inner); err != nil || got != want {
			t.Errorf("mounted: %v, %v; want %v", got, err, want)
		}
	}
	is(false)
	// A bind mount within one file system: the device number is the same on both sides.
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := k.Bind(int(f.Fd()), inner); err != nil {
		t.Fatal(err)
	}
	is(true)
	if err := k.UnmountBeneath(dir); err != nil {
		t.Fatal(err)
	}
	is(false)
	if got, err := k.Mounted(filepath.Join(dir, "none")); got || err != nil {
		t.Errorf("a missing path: %v, %v", got, err)
	}
}

func TestUnmountBeneathHandlesStackedAndNestedMounts(t *testing.T) {
	k, dir := &Kernel{}, t.TempDir()
	// A symbolic link in the path, and names that the mount table escapes or that share a prefix.
	root := filepath.Join(dir, "real root")
	if err := errors.Join(os.Mkdir(root, 0o755), os.Symlink(root, filepath.Join(dir, "link")), os.Mkdir(root+"-sibling", 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, point := range []string{"a", "a", "a/b", "c"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, point), 0o755), k.Tmpfs(filepath.Join(root, point), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Tmpfs(root+"-sibling", 0); err != nil {
		t.Fatal(err)
	}
	if got, err := k.MountPoints(filepath.Join(dir, "link")); err != nil || len(got) != 4 || filepath.Base(got[0]) != "b" {
		t.Fatalf("beneath: %v, %v; want 4, the deepest first", got, err)
	}
	if err := k.UnmountBeneath(filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if got, _ := k.MountPoints(root); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	if got, _ := k.MountPoints(root + "-sibling"); len(got) != 1 {
		t.Error("the sibling was unmounted, too")
	}
	_ = k.UnmountBeneath(dir)
}

func TestBusyMountIsAnError(t *testing.T) {
	k, dir := &Kernel{}, t.TempDir()
	if err := k.Tmpfs(dir, 0); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "open"))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.UnmountBeneath(dir); !errors.Is(err, unix.EBUSY) {
		t.Errorf("unmount of a busy mount: %v", err)
	}
	f.Close()
	if err := k.UnmountBeneath(dir); err != nil {
		t.Error(err)
	}
}

// TestBusyMountKeepsNoOther: a busy mount does not keep other volumes mounted.
func TestBusyMountKeepsNoOther(t *testing.T) {
	k, dir := &Kernel{}, t.TempDir()
	for _, point := range []string{"a", "a/busy", "b", "b/c", "d"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, point), 0o755), k.Tmpfs(filepath.Join(dir, point), 0)); err != nil {
			t.Fatal(err)
		}
	}
	var open []*os.File
	for _, point := range []string{"a/busy", "d"} {
		f, err := os.Create(filepath.Join(dir, point, "open"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		open = append(open, f)
	}
	err := k.UnmountBeneath(dir)
	if !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), "a/busy") || !strings.Contains(err.Error(), "d: ") {
		t.Errorf("error %v, want both that are busy", err)
	}
	if left, _ := k.MountPoints(dir); len(left) != 3 {
		t.Errorf("left: %v, want a, a/busy and d", left)
	}
	for _, f := range open {
		f.Close()
	}
	if err := k.UnmountBeneath(dir); err != nil {
		t.Error(err)
	}
}

func TestSameFilesystemMount(t *testing.T) {
	k, dir := &Kernel{}, t.TempDir()
	staged, shown, other := filepath.Join(dir, "plugins/staged"), filepath.Join(dir, "pods/shown"), filepath.Join(dir, "pods/other")
	for _, path := range []string{staged, shown, other} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(k.Tmpfs(staged, 0), k.Tmpfs(other, 0)); err != nil {
		t.Fatal(err)
	}
	defer k.UnmountBeneath(dir)
	f, err := os.Open(staged)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := k.Bind(int(f.Fd()), shown); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for path, want := range map[string]string{shown: staged, other: "", filepath.Join(dir, "pods/none"): "", filepath.Join(dir, "none/none"): ""} {
		if got, err := k.SameFilesystemMount(path, filepath.Join(dir, "plugins")); got != want || err != nil {
			t.Errorf("mount of the file system at %s: %q, %v; want %q", path, got, err, want)
		}
	}
}
