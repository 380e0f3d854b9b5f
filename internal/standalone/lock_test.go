package standalone

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := lockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockFile(path); err == nil || !strings.Contains(err.Error(), "process "+strings.TrimSpace(string(content))) {
		t.Errorf("second lock: got %v, want an error with process %s", err, content)
	}
	first.Close()
	second, err := lockFile(path)
	if err != nil {
		t.Fatalf("lock after its holder has closed it: %v", err)
	}
	second.Close()
}
