package logs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pod that mounts the folder of its logs must not have the agent read, or write, other files
// of the node.
func TestCompressFollowsNoLinks(t *testing.T) {
	for name, place := range map[string]func(path, outside string) error{
		"link in place of the log": func(path, outside string) error { return os.Symlink(outside, path) },
		"pipe in place of the log": func(path, _ string) error { return syscall.Mkfifo(path, 0o644) },
		"link in place of the draft": func(path, outside string) error {
			if err := os.WriteFile(path, []byte("log"), 0o600); err != nil {
				return err
			}
			return os.Symlink(outside, path+unfinished)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "shadow")
			if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "0.log.20260101-000000")
			if err := place(path, outside); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- compressFile(t.Context(), path) }()
			select {
			case err := <-done:
				_, packed := os.Lstat(path + compressed)
				if isLog := name == "link in place of the draft"; isLog != (err == nil) || isLog != (packed == nil) {
					t.Errorf("compressed: %v, packed form: %v", err, packed)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("it waits for a writer")
			}
			if content, err := os.ReadFile(outside); err != nil || string(content) != "secret" {
				t.Errorf("the file outside holds %q (%v)", content, err)
			}
		})
	}
}
