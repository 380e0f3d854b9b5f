package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKernelSettings(t *testing.T) {
	root := t.TempDir()
	for _, d := range kernelDefaults {
		path := filepath.Join(root, d.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(d.value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := kernelSettings(root, true); err != nil {
		t.Errorf("a node's kernel: %v", err)
	}
	panics := filepath.Join(root, "vm/panic_on_oom")
	if err := os.WriteFile(panics, []byte("2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := kernelSettings(root, true)
	if err == nil || err.Error() != "invalid kernel flag: vm/panic_on_oom, expected value: 0, actual value: 2" {
		t.Errorf("protected: %v", err)
	}
	if err := kernelSettings(root, false); err != nil {
		t.Error(err)
	}
	if now, err := os.ReadFile(panics); err != nil || string(now) != "0" {
		t.Errorf("changed to %q, %v", now, err)
	}
	if err := os.Remove(panics); err != nil {
		t.Fatal(err)
	}
	for _, protect := range []bool{true, false} {
		if err := kernelSettings(root, protect); err == nil || !strings.Contains(err.Error(), "panic_on_oom") {
			t.Errorf("a setting that is not there: %v", err)
		}
	}
}
