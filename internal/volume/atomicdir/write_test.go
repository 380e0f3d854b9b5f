package atomicdir

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var now = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func text(s string) File { return File{Data: []byte(s), Mode: 0o644} }

func write(t *testing.T, dir string, p Payload) {
	t.Helper()
	if err := Write(dir, p, now, nil); err != nil {
		t.Fatal(err)
	}
}

// shows checks that the visible names in dir resolve to exactly the payload.
func shows(t *testing.T, dir string, want Payload) {
	t.Helper()
	tops := map[string]bool{}
	for path, file := range want {
		top, _, _ := strings.Cut(path, "/")
		tops[top] = true
		if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != string(file.Data) {
			t.Errorf("%s holds %q (%v), want %q", path, got, err, file.Data)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	hidden := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			hidden++
		} else if !tops[e.Name()] {
			t.Errorf("%s is still visible", e.Name())
		}
	}
	if hidden != 2 {
		t.Errorf("%d hidden entries, want ..data and one directory", hidden)
	}
}

func TestWriteReplacesFiles(t *testing.T) {
	steps := []Payload{
		{"a": text("1"), "b": text("2")},
		{"a": text("1"), "b": text("3")},
		{"a": text("1")},
		{"a": text("1"), "dir/x": text("4"), "dir/y": text("5")},
		{"a": text("1"), "dir/y": text("5")},
		{"dir": text("a file in the directory's place")},
		{"dir/x": text("and back")},
		{},
		{"a": text("again")},
	}
	dir := t.TempDir()
	for _, p := range steps {
		write(t, dir, p)
		shows(t, dir, p)
	}
}

func TestLayout(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, Payload{"key": text("v"), "sub/key": text("v")})
	for name, want := range map[string]string{"key": "..data/key", "sub": "..data/sub"} {
		if got, err := os.Readlink(filepath.Join(dir, name)); err != nil || got != want {
			t.Errorf("%s points to %q (%v), want %q", name, got, err, want)
		}
	}
	data, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil || !strings.HasPrefix(data, "..2026_01_02_15_04_05.") {
		t.Errorf("..data points to %q (%v)", data, err)
	}
	if info, err := os.Stat(filepath.Join(dir, data)); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("data directory: %v, %v; want mode 755", info.Mode(), err)
	}
}

func TestSameContentIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	p := Payload{"a": text("1"), "dir/b": text("2")}
	write(t, dir, p)
	before, _ := os.Readlink(filepath.Join(dir, "..data"))
	write(t, dir, maps.Clone(p))
	if after, _ := os.Readlink(filepath.Join(dir, "..data")); after != before {
		t.Error("unchanged content was swapped")
	}
}

func TestModesAndOwners(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	dir := t.TempDir()
	user := int64(1000)
	write(t, dir, Payload{"a": {Data: []byte("x"), Mode: 0o444}, "b": {Data: []byte("x"), Mode: 0o600, Owner: &user}})
	for name, want := range map[string][2]uint32{"a": {0o444, 0}, "b": {0o600, 1000}} {
		var st syscall.Stat_t
		if err := syscall.Stat(filepath.Join(dir, name), &st); err != nil || st.Mode&0o777 != want[0] || st.Uid != want[1] {
			t.Errorf("%s: mode %o, user %d (%v); want %o, %d", name, st.Mode&0o777, st.Uid, err, want[0], want[1])
		}
	}
}

func TestOwnIsCalledBeforeFilesAreVisible(t *testing.T) {
	dir := t.TempDir()
	err := Write(dir, Payload{"a": text("1")}, now, func() error {
		if _, err := os.Lstat(filepath.Join(dir, "..data")); !errors.Is(err, fs.ErrNotExist) {
			t.Error("the data is visible already")
		}
		found, _ := filepath.Glob(filepath.Join(dir, "..2026*", "a"))
		if len(found) != 1 {
			t.Error("the file does not exist yet")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestFailedWriteKeepsOldFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, Payload{"a": text("1")})
	if err := Write(dir, Payload{"a": text("2")}, now, func() error { return errors.New("no") }); err == nil {
		t.Error("no error")
	}
	shows(t, dir, Payload{"a": text("1")})
}

// TestWriteAfterCrash: each case is the state after a crash at one step.
func TestWriteAfterCrash(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"data directory without link": func(dir string) error { return os.Mkdir(filepath.Join(dir, "..2025_01_01_00_00_00.1"), 0o755) },
		"temporary link left":         func(dir string) error { return os.Symlink("..2025", filepath.Join(dir, "..data_tmp")) },
		"outdated name":               func(dir string) error { return os.Symlink("..data/gone", filepath.Join(dir, "gone")) },
		"visible name missing":        func(dir string) error { return os.Remove(filepath.Join(dir, "a")) },
		"dangling data link": func(dir string) error {
			_ = os.Remove(filepath.Join(dir, "..data"))
			return os.Symlink("..gone", filepath.Join(dir, "..data"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, Payload{"a": text("1")})
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			next := Payload{"a": text("1"), "b": text("2")}
			write(t, dir, next)
			shows(t, dir, next)
		})
	}
}

// TestOtherEntriesStay: other links, and directories that are mount points of other volumes.
func TestOtherEntriesStay(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, Payload{"a": text("1"), "b": text("2")})
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "nested"), 0o755), os.Symlink("/etc", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	write(t, dir, Payload{"a": text("1")})
	for name, want := range map[string]bool{"a": true, "b": false, "nested": true, "link": true} {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", name, err, want)
		}
	}
}

func TestInvalidPathsAreRejected(t *testing.T) {
	for _, path := range []string{"", "/abs", "..", "../x", "a/../../x", "..data", "..x", "./..data", strings.Repeat("n", 256), strings.Repeat("d/", 2049)} {
		if err := Write(t.TempDir(), Payload{path: text("x")}, now, nil); err == nil {
			t.Errorf("%.20q was written", path)
		}
	}
}

func FuzzPathStaysInside(f *testing.F) {
	for _, seed := range []string{"a", "a/b", "../x", "..data/x", "a//b", "./a", "a/./b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		clean, err := cleanPayload(Payload{path: {}})
		if err != nil {
			return
		}
		for p := range clean {
			if !filepath.IsLocal(p) || strings.HasPrefix(p, "..") || slices.Contains(strings.Split(p, "/"), "..") {
				t.Errorf("%q passed as %q", path, p)
			}
		}
	})
}
