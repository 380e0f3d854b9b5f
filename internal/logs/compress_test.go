package logs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pod that mounts its log directory must not make the kubelet read or write other files of the
// node.
func TestCompressFollowsNoLinks(t *testing.T) {
	for name, place := range map[string]func(path, outside string) error{
		"link in place of the log": func(path, outside string) error { return os.Symlink(outside, path) },
		"pipe in place of the log": func(path, _ string) error { return syscall.Mkfifo(path, 0o644) },
		"link in place of the temporary file": func(path, outside string) error {
			if err := os.WriteFile(path, []byte("log"), 0o600); err != nil {
				return err
			}
			return os.Symlink(outside, path+tmpSuffix)
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
				_, gzErr := os.Lstat(path + gzipSuffix)
				if isLog := name == "link in place of the temporary file"; isLog != (err == nil) || isLog != (gzErr == nil) {
					t.Errorf("compressed: %v, compressed file: %v", err, gzErr)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("blocked on a FIFO")
			}
			if content, err := os.ReadFile(outside); err != nil || string(content) != "secret" {
				t.Errorf("the file outside contains %q (%v)", content, err)
			}
		})
	}
}
