package standalone

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// lockFile takes the lock that prevents a second instance. The kernel releases it when the
// process exits for any reason, so a stale file does no harm.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			holder, _ := os.ReadFile(path)
			f.Close()
			return nil, fmt.Errorf("lock: swiftlet is already up, as process %s (lock %s)", strings.TrimSpace(string(holder)), path)
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// The previous holder may have removed the file between our open and our lock. A lock
		// on a removed file would not stop a second instance.
		if isSameFile(f, path) {
			return f, writePID(f)
		}
		f.Close()
	}
}

func isSameFile(f *os.File, path string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(held, named)
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if _, err := fmt.Fprintf(f, "%d\n", os.Getpid()); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}
