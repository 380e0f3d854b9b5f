package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSetKernelSettings(t *testing.T) {
	const name = "vm/panic_on_oom"
	tests := map[string]struct {
		content string // of the setting; no file if empty
		protect bool
		want    string // in the error; no error if empty
	}{
		"already set":            {content: "0\n"},
		"protected, already set": {content: "0\n", protect: true},
		"differs and is changed": {content: "2\n"},
		"protected, differs":     {content: "2\n", protect: true, want: "invalid kernel flag: vm/panic_on_oom, expected value: 0, actual value: 2"},
		"missing":                {want: name},
		"protected, missing":     {protect: true, want: name},
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			root := t.TempDir()
			for _, s := range kernelSettings {
				write(t, filepath.Join(root, s.name), s.value+"\n")
			}
			path := filepath.Join(root, name)
			if tt.content == "" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else {
				write(t, path, tt.content)
			}
			err := setKernelSettings(root, tt.protect)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("got error %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if now, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(now)) != "0" {
				t.Errorf("%s is %q (%v), want 0", name, now, err)
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
