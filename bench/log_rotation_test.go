package bench

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"
)

// TestCountLines: lines of all files count once, parts of lines and copies do not.
func TestCountLines(t *testing.T) {
	dir := t.TempDir()
	const two = "2026-11-18T06:00:00Z stdout F one\n2026-11-18T06:00:00Z stdout P par\n2026-11-18T06:00:00Z stdout F tial\n"
	for _, name := range []string{"0.log", "0.log.20261118-060001", "0.log.20261118-060000", "0.log.20261118-060000.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(two), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := os.Create(filepath.Join(dir, "0.log.20261118-060000.gz")) // of a file that still exists
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	w := gzip.NewWriter(packed)
	if _, err := w.Write([]byte(two)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := countLines(dir); err != nil || got != 6 {
		t.Errorf("%d %v, want 6", got, err)
	}
}
