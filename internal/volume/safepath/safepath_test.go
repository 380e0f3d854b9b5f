package safepath

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"swiftlet/internal/volume/privatens"
)

func TestMain(m *testing.M) { privatens.Main(m) }

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func TestRemoveAll(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "tree")
	must(t, os.MkdirAll(filepath.Join(root, "a/b/c"), 0o755))
	for i := range 3000 { // more than one batch
		must(t, os.WriteFile(filepath.Join(root, "a/b", strings.Repeat("f", 1+i%200)+string(rune('a'+i%26))+strings.Repeat("g", i/200)), nil, 0o600))
	}
	must(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600), os.Symlink("/", filepath.Join(root, "link")), os.Chmod(filepath.Join(root, "a/b"), 0o500))
	must(t, RemoveAll(root))
	if exists(root) {
		t.Error("the tree is still there")
	}
	must(t, RemoveAll(root), RemoveAll(filepath.Join(root, "below/nothing")))
}

// TestRemoveAllEntersNoMount covers the three kinds of boundaries; the bind mount within
// one file system is the one that a device number does not show.
func TestRemoveAllEntersNoMount(t *testing.T) {
	for name, mount := range map[string]func(source, target string) error{
		"bind mount of the same file system": func(source, target string) error { return unix.Mount(source, target, "", unix.MS_BIND, "") },
		"another file system": func(_, target string) error {
			if err := unix.Mount("tmpfs", target, "tmpfs", 0, ""); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(target, "canary"), nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			source, target := filepath.Join(dir, "source"), filepath.Join(dir, "tree/deep/mnt")
			must(t, os.MkdirAll(source, 0o755), os.MkdirAll(target, 0o755), os.WriteFile(filepath.Join(source, "canary"), nil, 0o600),
				os.WriteFile(filepath.Join(dir, "tree/plain"), nil, 0o600), mount(source, target))
			t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
			var boundary *MountPointError
			if err := RemoveAll(filepath.Join(dir, "tree")); !errors.As(err, &boundary) || boundary.Path != target {
				t.Errorf("error %v, want one that names %s", err, target)
			}
			if !exists(filepath.Join(target, "canary")) || !exists(filepath.Join(source, "canary")) {
				t.Fatal("deleted through the mount")
			}
		})
	}
	t.Run("mounted file", func(t *testing.T) {
		dir := t.TempDir()
		source, target := filepath.Join(dir, "source"), filepath.Join(dir, "tree/file")
		must(t, os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(source, []byte("x"), 0o600), os.WriteFile(target, nil, 0o600),
			unix.Mount(source, target, "", unix.MS_BIND, ""))
		t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
		var boundary *MountPointError
		if err := RemoveAll(filepath.Join(dir, "tree")); !errors.As(err, &boundary) {
			t.Errorf("error %v, want a mount point", err)
		}
		if got, _ := os.ReadFile(source); string(got) != "x" {
			t.Error("the mounted file is gone")
		}
	})
}

// TestRemoveAllEntersNoNewMount covers a mount that is made after the kernel has refused to remove the
// directory because it was not empty: until then EBUSY protects the mount point.
func TestRemoveAllEntersNoNewMount(t *testing.T) {
	dir := t.TempDir()
	source, tree := filepath.Join(dir, "source"), filepath.Join(dir, "tree")
	must(t, os.Mkdir(source, 0o755), os.Mkdir(tree, 0o755))
	r, err := newRemoval(tree)
	must(t, err)
	defer r.Close()
	must(t, unix.Mount(source, tree, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(tree, unix.MNT_DETACH) })
	r.enter("tree")
	var boundary *MountPointError
	if err := errors.Join(r.errs...); !errors.As(err, &boundary) || boundary.Path != tree {
		t.Errorf("error %v, want one that names %s", err, tree)
	}
	if r.Depth() != 0 {
		t.Error("entered the mount")
	}
}

func TestOpenBeneath(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "root/a/b"), 0o755), os.Mkdir(filepath.Join(dir, "outside"), 0o755),
		os.Symlink("a/b", filepath.Join(dir, "root/inside")), os.Symlink("../outside", filepath.Join(dir, "root/climb")),
		os.Symlink("/", filepath.Join(dir, "root/abs")), os.Symlink("/proc/self/root", filepath.Join(dir, "root/magic")),
		os.Symlink(filepath.Join(dir, "root/a"), filepath.Join(dir, "root/abs-inside")), os.Symlink("../root/a", filepath.Join(dir, "root/returns")),
		os.Symlink(filepath.Join(dir, "root"), filepath.Join(dir, "alias")), os.Symlink(filepath.Join(dir, "alias/a"), filepath.Join(dir, "root/by-alias")),
		os.Symlink(filepath.Join(dir, "root-2"), filepath.Join(dir, "root/sibling")), os.Mkdir(filepath.Join(dir, "root-2"), 0o755))
	root, err := OpenRoot(filepath.Join(dir, "alias"))
	must(t, err)
	defer root.Close()
	for path, ok := range map[string]bool{
		"a": true, "a/b": true, "inside": true, "a/../a": true, ".": true,
		"abs-inside": true, "abs-inside/b": true, "returns/b": true, "by-alias/b": true, "sibling": false, "abs-inside/none": false,
		"..": false, "../outside": false, "climb": false, "abs": false, "abs/etc": false, "magic": false, "/": false, "none": false,
	} {
		f, err := OpenBeneath(root, path)
		if (err == nil) != ok {
			t.Errorf("%s: %v, want success %v", path, err, ok)
		}
		if err == nil {
			f.Close()
		}
	}
}

func TestMkdirAll(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "root/real"), 0o700), os.Mkdir(filepath.Join(dir, "outside"), 0o755),
		os.Symlink("real", filepath.Join(dir, "root/link")), os.Symlink("../outside", filepath.Join(dir, "root/out")),
		os.Symlink(filepath.Join(dir, "root/real"), filepath.Join(dir, "root/abs-link")), os.Symlink(filepath.Join(dir, "outside"), filepath.Join(dir, "root/abs-out")),
		os.Symlink(filepath.Join(dir, "root/nowhere"), filepath.Join(dir, "root/abs-dangling")), os.Symlink("nowhere", filepath.Join(dir, "root/dangling")), os.WriteFile(filepath.Join(dir, "root/file"), nil, 0o600))
	root, err := OpenRoot(filepath.Join(dir, "root"))
	must(t, err)
	defer root.Close()
	for _, path := range []string{"x/y/z", "link/new", "abs-link/other/new", "x/y/z"} {
		if err := MkdirAll(root, path, 0o2775); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	var st syscall.Stat_t
	must(t, syscall.Stat(filepath.Join(dir, "root/real/new"), &st))
	if st.Mode&0o7777 != 0o2775 {
		t.Errorf("mode %o, want 2775 regardless of the umask", st.Mode&0o7777)
	}
	for _, path := range []string{"out/new", "abs-out/new", "file/new", "dangling/new", "abs-dangling/new", "../new"} {
		if err := MkdirAll(root, path, 0o755); err == nil {
			t.Errorf("%s was made", path)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, "outside")); len(entries) > 0 {
		t.Error("something was made outside")
	}
}
