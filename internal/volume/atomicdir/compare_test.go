package atomicdir

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Anything in place of a file is written again: no more of it is read than the file has, and opening
// it does not block.
func TestChangedFilesAreWrittenAgain(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"same size":  func(path string) error { return os.WriteFile(path, []byte("2"), 0o600) },
		"huge":       func(path string) error { return os.Truncate(path, 256<<20) },
		"empty":      func(path string) error { return os.Truncate(path, 0) },
		"pipe":       func(path string) error { _ = os.Remove(path); return syscall.Mkfifo(path, 0o600) },
		"link":       func(path string) error { _ = os.Remove(path); return os.Symlink("/etc/hostname", path) },
		"directory":  func(path string) error { _ = os.Remove(path); return os.Mkdir(path, 0o700) },
		"missing":    os.Remove,
		"other mode": func(path string) error { return os.Chmod(path, 0) }, // the content is the same
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := Payload{"a": text("1")}
			write(t, dir, p)
			if err := change(filepath.Join(dir, dataLink, "a")); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			done := make(chan error, 1)
			go func() { done <- Write(dir, p, now, nil) }()
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("blocked on a FIFO")
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
				t.Errorf("allocated %d bytes", took)
			}
			shows(t, dir, p)
		})
	}
}
