package backup

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLeftoversOfABackup: what a backup that was killed has left beside its file is removed by the next, and nothing
// else is.
func TestLeftoversOfABackup(t *testing.T) {
	dir := t.TempDir()
	c := Config{File: filepath.Join(dir, "node"), Data: filepath.Join(dir, "api"), PKI: filepath.Join(dir, "pki"), Progress: io.Discard}
	kept := []string{c.Data, filepath.Join(dir, ".node-old"), filepath.Join(dir, ".other-12")}
	left := filepath.Join(dir, ".node-12")
	for _, path := range append(kept, left) {
		if err := os.MkdirAll(filepath.Join(path, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	running, err := c.oneBackup()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(left, 0o700); err != nil { // that of the running one
		t.Fatal(err)
	}
	if err := Save(t.Context(), c, time.Now()); err == nil || !strings.Contains(err.Error(), "another backup of the node is being written") {
		t.Errorf("while another is written: %v", err)
	}
	if _, err := os.Stat(left); err != nil {
		t.Errorf("the directory of the running backup: %v", err)
	}
	if err := running.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Save(t.Context(), c, time.Now()); err == nil || !strings.Contains(err.Error(), "find the store") {
		t.Errorf("without a store: %v", err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %s, %v", left, err)
	}
	for _, path := range kept {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}
