package safepath

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"swiftlet/internal/filetree"
)

// dig creates a chain of directories below dir, each with a file, and returns the deepest one.
func dig(t *testing.T, dir string, depth int, name string) int {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		must(t, unix.Mknodat(next, "file", unix.S_IFREG|0o600, 0))
		unix.Close(fd)
		fd = next
	}
	return fd
}

// openLimit lowers RLIMIT_NOFILE to a few more than the files that are open now.
func openLimit(t *testing.T, few int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(entries) + few), Max: old.Max}))
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &old) })
}

// TestRemoveAllOfADeepTree: a pod can nest directories without limit, and their removal needs little
// memory.
func TestRemoveAllOfADeepTree(t *testing.T) {
	const depth, most = 20_000, 64 << 20
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "")) // a disk takes its time
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	root := filepath.Join(dir, "tree")
	must(t, os.Mkdir(root, 0o755))
	unix.Close(dig(t, root, depth, strings.Repeat("d", 255)))
	openLimit(t, filetree.OpenDirs+8)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	must(t, RemoveAll(root))
	runtime.ReadMemStats(&after)
	if exists(root) {
		t.Error("the tree is still there")
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > most {
		t.Errorf("allocated %d MiB, want at most %d", took>>20, most>>20)
	}
}

// TestRemoveAllOfADeepTreeOnDisk: ext4 reads nothing from the beginning of a directory that was opened and
// first read at its end.
func TestRemoveAllOfADeepTreeOnDisk(t *testing.T) {
	root := filepath.Join(t.TempDir(), "tree")
	must(t, os.Mkdir(root, 0o755))
	unix.Close(dig(t, root, 1000, "d"))
	must(t, RemoveAll(root))
	if exists(root) {
		t.Error("the tree is still there")
	}
}

// TestRemoveAllOfAWideTree: directories that are closed on the way down are read again.
func TestRemoveAllOfAWideTree(t *testing.T) {
	root := filepath.Join(t.TempDir(), "tree")
	for _, branch := range []string{"a", "b", "c"} {
		for _, twig := range []string{"x", "y"} {
			dir := filepath.Join(root, branch, strings.Repeat("s/", 2*filetree.OpenDirs), twig)
			must(t, os.MkdirAll(dir, 0o755))
			unix.Close(dig(t, dir, 3*filetree.OpenDirs, "n"))
		}
	}
	must(t, RemoveAll(root))
	if exists(root) {
		t.Error("the tree is still there")
	}
}

// TestRemoveAllStopsAtADeepMount: the siblings of a deep mount point are removed, the mount point
// stays and is reported.
func TestRemoveAllStopsAtADeepMount(t *testing.T) {
	root := filepath.Join(t.TempDir(), "tree")
	must(t, os.Mkdir(root, 0o755))
	unix.Close(dig(t, root, 3*filetree.OpenDirs, "n"))
	bottom := filepath.Join(root, strings.Repeat("n/", 3*filetree.OpenDirs))
	target := filepath.Join(bottom, "mnt")
	must(t, os.Mkdir(target, 0o755), unix.Mount("tmpfs", target, "tmpfs", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
	must(t, os.WriteFile(filepath.Join(target, "canary"), nil, 0o600))
	var boundary *MountPointError
	if err := RemoveAll(root); !errors.As(err, &boundary) || boundary.Path != target || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("error %v, want one that names %s", err, target)
	}
	if !exists(filepath.Join(target, "canary")) {
		t.Error("deleted through the mount")
	}
	if exists(filepath.Join(bottom, "file")) || exists(filepath.Join(root, "n/file")) {
		t.Error("siblings of the mount point are left")
	}
}

// TestRemoveAllWhileDirectoriesMove has a pod swap a directory on the way down for another one, or
// move what is being removed elsewhere: nothing outside may go.
func TestRemoveAllWhileDirectoriesMove(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	must(t, os.MkdirAll(filepath.Join(outside, "kept"), 0o755), os.WriteFile(filepath.Join(outside, "file"), nil, 0o600))
	for range 5 {
		root := filepath.Join(dir, "tree")
		must(t, os.Mkdir(root, 0o755))
		unix.Close(dig(t, root, 4*filetree.OpenDirs, "n"))
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			deep := filepath.Join(root, strings.Repeat("n/", 2*filetree.OpenDirs))
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_ = os.Rename(deep, filepath.Join(outside, "moved"))
				_ = os.Symlink(outside, deep)
				runtime.Gosched()
				_ = os.Remove(deep)
				_ = os.Rename(filepath.Join(outside, "moved"), deep)
			}
		}()
		for range 50 {
			if err := RemoveAll(root); err == nil {
				break
			}
		}
		close(stop)
		<-stopped
		must(t, RemoveAll(root))
		must(t, RemoveAll(filepath.Join(outside, "moved")))
		if !exists(filepath.Join(outside, "kept")) || !exists(filepath.Join(outside, "file")) {
			t.Fatal("removed outside of the tree")
		}
	}
}

func TestWalk(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "tree")
	var want []string
	for _, branch := range []string{"a", "b"} {
		for _, twig := range []string{"x", "y"} {
			deep := filepath.Join(root, branch, strings.Repeat("s/", 2*filetree.OpenDirs), twig)
			must(t, os.MkdirAll(deep, 0o755), os.WriteFile(filepath.Join(deep, "file"), nil, 0o600))
		}
	}
	must(t, os.Symlink("/", filepath.Join(root, "link")), unix.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	must(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		want = append(want, path)
		return err
	}))
	var got []string
	must(t, Walk(root, func(fd int) {
		path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		must(t, err)
		got = append(got, path)
	}))
	if last := got[len(got)-1]; last != root {
		t.Errorf("%s comes last, want the root", last)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("met %d of %d: %q", len(got), len(want), got)
	}
	visits := 0
	must(t, Walk(filepath.Join(root, "link"), func(int) { visits++ }), Walk(filepath.Join(root, "none"), func(int) { visits++ }))
	if visits != 1 {
		t.Errorf("%d visits of a link and of nothing, want 1", visits)
	}
}
