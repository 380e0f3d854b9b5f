package crashfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree lists the files of a directory with their content.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		switch {
		case d.IsDir():
			name += "/"
		case d.Type() == fs.ModeSymlink:
			target, _ := os.Readlink(path)
			name += " -> " + target
		default:
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name += fmt.Sprintf(" %q", content)
		}
		all = append(all, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func syncPath(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	must(t, f.Sync(), f.Close())
}

// TestLosses: what the disk has after common sequences of operations.
func TestLosses(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, dir string)
		want map[Loss][]string
	}{
		"new file is written and not synced": {
			do: func(t *testing.T, dir string) { must(t, os.WriteFile(dir+"/a", []byte("abcd"), 0o600)) },
			want: map[Loss][]string{
				Everything: nil, Data: {`a ""`}, Half: {`a "ab"`}, Nothing: {`a "abcd"`},
			},
		},
		"file is renamed before it is synced": {
			do: func(t *testing.T, dir string) {
				must(t, os.WriteFile(dir+"/a", []byte("old"), 0o600))
				syncPath(t, dir+"/a")
				syncPath(t, dir)
				must(t, os.WriteFile(dir+"/t", []byte("newer!"), 0o600), os.Rename(dir+"/t", dir+"/a"))
			},
			want: map[Loss][]string{
				Everything: {`a "old"`}, Data: {`a ""`}, Half: {`a "new"`}, Nothing: {`a "newer!"`},
			},
		},
		"file is synced and renamed, directory is not synced": {
			do: func(t *testing.T, dir string) {
				must(t, os.WriteFile(dir+"/t", []byte("new"), 0o600))
				syncPath(t, dir+"/t")
				must(t, os.Rename(dir+"/t", dir+"/a"))
			},
			want: map[Loss][]string{
				Everything: nil, Data: {`a "new"`}, Half: {`a "new"`}, Nothing: {`a "new"`},
			},
		},
		"file is overwritten in place": {
			do: func(t *testing.T, dir string) {
				must(t, os.WriteFile(dir+"/a", []byte("1234"), 0o600))
				syncPath(t, dir+"/a")
				syncPath(t, dir)
				must(t, os.WriteFile(dir+"/a", []byte("5678"), 0o600))
			},
			want: map[Loss][]string{
				Everything: {`a "1234"`}, Data: {`a "1234"`}, Half: {`a "5634"`}, Nothing: {`a "5678"`},
			},
		},
		"removed file returns unless its directory is synced": {
			do: func(t *testing.T, dir string) {
				must(t, os.Mkdir(dir+"/d", 0o700), os.WriteFile(dir+"/d/a", []byte("1234"), 0o600), os.Symlink("a", dir+"/d/l"))
				syncPath(t, dir+"/d/a")
				syncPath(t, dir+"/d")
				syncPath(t, dir)
				must(t, os.Remove(dir+"/d/a"))
			},
			want: map[Loss][]string{
				Everything: {"d/", `d/a "1234"`, "d/l -> a"}, Data: {"d/", "d/l -> a"}, Half: {"d/", "d/l -> a"}, Nothing: {"d/", "d/l -> a"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := Mount(t)
			c.do(t, f.Dir)
			for loss, want := range c.want {
				dir := t.TempDir()
				must(t, f.Build(dir, loss))
				if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
					t.Errorf("%s: %s\n%s", loss, diff, f.Log())
				}
			}
		})
	}
}

func TestFail(t *testing.T) {
	f := Mount(t)
	must(t, os.WriteFile(f.Dir+"/a", []byte("x"), 0o600))
	f.Fail(func(_ int, op Op) syscall.Errno {
		if op.Kind == Write {
			return syscall.ENOSPC
		}
		return 0
	})
	if err := os.WriteFile(f.Dir+"/b", []byte("x"), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
	f.Fail(nil)
	must(t, os.WriteFile(f.Dir+"/b", []byte("y"), 0o600))
}

func TestCutAt(t *testing.T) {
	f := Mount(t)
	must(t, os.Mkdir(f.Dir+"/a", 0o700))
	f.CutAt(3)
	must(t, os.Mkdir(f.Dir+"/b", 0o700))
	for _, name := range []string{"c", "d"} {
		if err := os.Mkdir(f.Dir+"/"+name, 0o700); !errors.Is(err, syscall.EIO) || !f.IsOff() {
			t.Errorf("got %v, power is off: %v", err, f.IsOff())
		}
	}
	if got := fmt.Sprint(f.Log()); !strings.Contains(got, "mkdir b") || strings.Contains(got, "mkdir c") {
		t.Error(got)
	}
}
