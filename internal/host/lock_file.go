package host

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes the lock file that keeps two agents off one node. Where another process holds it,
// Lock waits until ctx ends, or fails at once where noWait is set. The lock is released when
// the file is closed.
func Lock(ctx context.Context, path string, noWait bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	how := unix.LOCK_EX
	if noWait {
		how |= unix.LOCK_NB
	}
	locked := make(chan error, 1)
	go func() { locked <- unix.Flock(int(f.Fd()), how) }() // nothing but the lock ends the wait of flock
	select {
	case err = <-locked:
	case <-ctx.Done():
		go func() { <-locked; f.Close() }() // whoever waits next must not wait for this one
		return nil, fmt.Errorf("wait for lock file %s: %w", path, ctx.Err())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}
