package host

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLock(t *testing.T) {
	path, log := filepath.Join(t.TempDir(), "lock"), slog.New(slog.DiscardHandler)
	if none, err := Lock(t.Context(), "", true, log); none != nil || err != nil {
		t.Errorf("without a path: %v, %v", none, err)
	}
	first, err := Lock(t.Context(), path, false, log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(t.Context(), path, true, log); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("second lock without waiting: %v, want EWOULDBLOCK", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lock(ctx, path, false, log); !errors.Is(err, context.Canceled) {
		t.Errorf("second lock with canceled context: %v, want %v", err, context.Canceled)
	}
	waiting := make(chan error)
	go func() {
		f, err := Lock(t.Context(), path, false, log)
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
