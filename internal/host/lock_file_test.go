package host

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Lock(t.Context(), path, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(t.Context(), path, true); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("second lock without waiting: %v, want EWOULDBLOCK", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lock(ctx, path, false); !errors.Is(err, context.Canceled) {
		t.Errorf("second lock with canceled context: %v, want %v", err, context.Canceled)
	}
	waiting := make(chan error)
	go func() {
		f, err := Lock(t.Context(), path, false)
		if err == nil {
			err = f.Close()
		}
		waiting <- err
	}()
	first.Close()
	if err := <-waiting; err != nil {
		t.Errorf("second lock after the first is released: %v", err)
	}
}
