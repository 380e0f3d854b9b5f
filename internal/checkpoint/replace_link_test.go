package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestReplaceLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "current")
	for _, target := range []string{"first", "second"} {
		r := &recorder{}
		if err := replaceLink(r, path, target); err != nil {
			t.Fatal(err)
		}
		if want := []string{"rename to current", "sync directory"}; !slices.Equal(r.taken, want) {
			t.Errorf("took the steps %q, want %q", r.taken, want)
		}
		if got, err := os.Readlink(path); err != nil || got != target {
			t.Errorf("link to %q (%v), want %q", got, err, target)
		}
	}
}

func TestFailedReplaceLinkKeepsOldLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "current")
	if err := ReplaceLink(path, "old"); err != nil {
		t.Fatal(err)
	}
	if err := replaceLink(&recorder{failAt: 1}, path, "new"); !errors.Is(err, errInterrupted) {
		t.Errorf("got %v, want %v", err, errInterrupted)
	}
	if got, err := os.Readlink(path); err != nil || got != "old" {
		t.Errorf("link to %q (%v), want the old one", got, err)
	}
	if left, err := Files(path); err != nil || len(left) != 1 {
		t.Errorf("files %q (%v), want the link alone", left, err)
	}
}

// A link that a crash left before its rename does not stop the next call.
func TestReplaceLinkAfterCrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "current")
	if err := os.Symlink("lost", filepath.Join(filepath.Dir(path), ".current.link")); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceLink(path, "new"); err != nil {
		t.Fatal(err)
	}
	if left, err := Files(path); err != nil || len(left) != 1 {
		t.Errorf("files %q (%v), want the link alone", left, err)
	}
}

func TestReplaceLinkKeepsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "current")
	if err := os.WriteFile(path, []byte("an administrator's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceLink(path, "new"); err == nil {
		t.Error("a file was replaced by a link")
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "an administrator's" {
		t.Errorf("content %q (%v)", content, err)
	}
}
