package stats

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"swiftlet/internal/filetree"
)

// nest makes nested directories, each with a file.
func nest(t *testing.T, top string, depth, name int) {
	t.Helper()
	at, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for i := range depth {
		if err != nil {
			t.Fatal(err)
		}
		below := strings.Repeat("x", name-8) + fmt.Sprintf("%08d", i)
		next := -1
		if err = unix.Mkdirat(at, below, 0o755); err == nil {
			next, err = unix.Openat(at, below, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		}
		if err == nil {
			var fd int
			if fd, err = unix.Openat(next, "file", unix.O_CREAT|unix.O_WRONLY, 0o644); err == nil {
				unix.Close(fd)
			}
		}
		unix.Close(at)
		at = next
	}
	unix.Close(at)
}

// limitOpenFiles lowers the limit of open files of this process.
func limitOpenFiles(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 128, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Error(err)
		}
	})
}

// Files deeper than PATH_MAX are counted, with few files open at a time.
func TestDeepTree(t *testing.T) {
	top := t.TempDir()
	const depth = 600
	nest(t, top, depth, 200)
	nest(t, filepath.Join(top, firstDir(t, top)), 100, 10) // visited on the way back
	limitOpenFiles(t)
	before := openFDs(t)
	got, err := treeUsage(t.Context(), top)
	if want := uint64(1 + 2*depth + 2*100); err != nil || got.inodes != want {
		t.Errorf("%d files, %v; want %d", got.inodes, err, want)
	}
	if after := openFDs(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
}

// When directories are moved during the walk, the rest counts.
func TestMovedTree(t *testing.T) {
	top := t.TempDir()
	nest(t, top, filetree.OpenDirs+10, 10)
	for i := range 20 {
		if err := os.MkdirAll(filepath.Join(top, fmt.Sprint("wide-", i), "below"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	moved, deep := false, top
	for i := range filetree.OpenDirs + 5 {
		deep = filepath.Join(deep, fmt.Sprintf("xx%08d", i))
	}
	cursor, err := filetree.Open(top, filetree.OneMount)
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	tr := &treeWalk{Cursor: cursor}
	tr.countDir()
	for tr.step(t.Context()) {
		if !moved && tr.Depth() == filetree.OpenDirs+7 {
			moved = true
			if err := os.Rename(deep, filepath.Join(top, "wide-0", "moved")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if least := uint64(1 + filetree.OpenDirs + 2*20); !moved || tr.firstErr == nil || tr.sum.inodes < least {
		t.Errorf("moved %v: %d files, missed %v; want %d at least", moved, tr.sum.inodes, tr.firstErr, least)
	}
}

// Directories that take several reads, with files and directories mixed.
func TestWideTree(t *testing.T) {
	top := t.TempDir()
	const wide = 500
	for i := range wide {
		dir := filepath.Join(top, fmt.Sprint("folder-", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{dir + "/in", dir + ".sibling"} {
			if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink("/", filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	got, err := treeUsage(t.Context(), top)
	if want := uint64(1 + 3*wide + 1); err != nil || got.inodes != want || got.bytes < 2*wide*4096 {
		t.Errorf("%+v, %v; want %d files", got, err, want)
	}
}

func BenchmarkWalk(b *testing.B) {
	top := b.TempDir()
	for i := range 1000 {
		dir := filepath.Join(top, fmt.Sprint("folder-", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 5 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(j)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		if _, err := treeUsage(b.Context(), top); err != nil {
			b.Fatal(err)
		}
	}
}

func firstDir(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatal(entries, err)
	}
	return entries[0].Name()
}

func openFDs(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// A pod may make millions of links. Each file counts once, without a list of them in memory.
func TestLinkedTree(t *testing.T) {
	top := t.TempDir()
	const files = 20000
	first, second := filepath.Join(top, "first"), filepath.Join(top, "second")
	if err := errors.Join(os.Mkdir(first, 0o755), os.Mkdir(second, 0o755)); err != nil {
		t.Fatal(err)
	}
	for i := range files {
		name := strconv.Itoa(i)
		file, err := os.Create(filepath.Join(first, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(file.Close(), os.Link(file.Name(), filepath.Join(second, name))); err != nil {
			t.Fatal(err)
		}
	}
	cursor, err := filetree.Open(top, filetree.OneMount)
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	tr := &treeWalk{Cursor: cursor}
	before := liveHeap()
	tr.walk(t.Context())
	if grown := int64(liveHeap()) - int64(before); grown > 128<<10 {
		t.Errorf("the walk keeps %d bytes", grown)
	}
	if got := tr.sum.inodes; got != files+3 {
		t.Errorf("%d files, want %d", got, files+3)
	}
}

// liveHeap returns the bytes of reachable objects.
func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
