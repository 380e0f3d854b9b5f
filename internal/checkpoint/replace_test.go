package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

var errInterrupted = errors.New("interrupted")

// recorder performs the steps, records them, and fails at one of them.
type recorder struct {
	disk
	taken  []string
	failAt int // the step that fails, 0 for none
}

func (r *recorder) step(format string, args ...any) error {
	if r.taken = append(r.taken, fmt.Sprintf(format, args...)); len(r.taken) == r.failAt {
		return errInterrupted
	}
	return nil
}

func (r *recorder) write(f *os.File, content []byte) error {
	return errors.Join(r.step("write"), r.disk.write(f, content[:len(content)/2]), r.disk.write(f, content[len(content)/2:]))
}

func (r *recorder) sync(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return r.step("sync directory")
	}
	return r.step("sync %d bytes, mode %v", info.Size(), info.Mode())
}

func (r *recorder) rename(from, to string) error {
	if err := r.step("rename to %s", filepath.Base(to)); err != nil {
		return err
	}
	return r.disk.rename(from, to)
}

var wholeWrite = []string{"write", "sync 3 bytes, mode -rw-r-----", "rename to state", "sync directory"}

func TestReplaceSyncsBeforeRename(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	path := filepath.Join(t.TempDir(), "state")
	r := &recorder{}
	if err := replace(r, path, []byte("new"), 0o640); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.taken, wholeWrite) {
		t.Errorf("took the steps %q, want %q", r.taken, wholeWrite)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v (%v), want 0640 regardless of the umask", info.Mode(), err)
	}
}

// A failed step leaves the old file and no temporary one, unless the rename has succeeded.
func TestFailedReplaceKeepsOldFile(t *testing.T) {
	for step, name := range wholeWrite {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state")
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := replace(&recorder{failAt: step + 1}, path, []byte("new"), 0o640); !errors.Is(err, errInterrupted) {
				t.Errorf("got %v, want %v", err, errInterrupted)
			}
			want := "old"
			if name == "sync directory" {
				want = "new"
			}
			if content, err := os.ReadFile(path); err != nil || string(content) != want {
				t.Errorf("the file holds %q (%v), want %q", content, err, want)
			}
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

func TestReplaceFailsOnDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("new"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestFilesFindsTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	if got, err := Files(filepath.Join(dir, "none", "state")); err != nil || len(got) != 0 {
		t.Errorf("without a directory: %v %v", got, err)
	}
	for _, name := range []string{"state", ".state.123", ".state.new", "state2", ".state", ".other.123"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, fs.ModePerm); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Files(path)
	want := []string{filepath.Join(dir, ".state.123"), filepath.Join(dir, ".state.new"), path}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v %v, want %v", got, err, want)
	}
}
