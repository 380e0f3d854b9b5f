package checkpoint

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestClean(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"state", ".state.123", ".sha256-0a.77", ".state", ".hidden.conf", "a.123"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".directory.1"), 0o700); err != nil {
		t.Fatal(err)
	}
	Clean(dir, slog.New(slog.DiscardHandler))
	Clean(filepath.Join(dir, "missing"), slog.New(slog.DiscardHandler))
	var left []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{".directory.1", ".hidden.conf", ".state", "a.123", "state"}; !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}
