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

func TestLockHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if pid, err := lockHolder(path); pid != 0 || err != nil {
		t.Errorf("without a file: process %d, %v", pid, err)
	}
	lock, err := lockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if pid, err := lockHolder(path); pid != os.Getpid() || err != nil {
		t.Errorf("while it is held: process %d, %v", pid, err)
	}
	lock.Close()
	if pid, err := lockHolder(path); pid != 0 || err != nil {
		t.Errorf("after a crash, which leaves the file: process %d, %v", pid, err)
	}
}
