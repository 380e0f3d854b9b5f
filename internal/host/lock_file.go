package host

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"
)

// Lock locks the file that prevents two kubelets on one node. If another process holds the lock,
// Lock waits until ctx is done, or fails at once with noWait. Closing the file releases the
// lock. Without a path there is no lock, and the file is nil.
func Lock(ctx context.Context, path string, noWait bool, log *slog.Logger) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	log.Info("waiting for lock file", "path", path)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	how := unix.LOCK_EX
	if noWait {
		how |= unix.LOCK_NB
	}
	locked := make(chan error, 1)
	go func() { locked <- unix.Flock(int(f.Fd()), how) }() // flock cannot be canceled
	select {
	case err = <-locked:
	case <-ctx.Done():
		go func() { <-locked; f.Close() }() // release the lock once flock returns
		return nil, fmt.Errorf("wait for lock file %s: %w", path, ctx.Err())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}
