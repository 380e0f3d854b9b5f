package iptables

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"
)

// watch has the channel sent to whenever a canary of the family may be gone, until the
// function is called, which waits for the end of it.
func (k *Keeper) watch(ctx context.Context, f *family, log *slog.Logger) (<-chan struct{}, func()) {
	ctx, stop := context.WithCancel(ctx)
	lost, done := make(chan struct{}, 1), make(chan struct{})
	tell := func() {
		select {
		case lost <- struct{}{}:
		default: // it is known already
		}
	}
	var kernel *os.File
	var err error
	if f.notifies(ctx) {
		if kernel, err = subscribe(); err != nil {
			log.Warn("the kernel does not tell of changes of iptables; looking instead", "every", look, "err", err)
		}
	}
	go func() {
		defer close(done)
		if kernel != nil {
			err := listen(ctx, kernel, f.number, tell)
			if ctx.Err() != nil {
				return
			}
			log.Warn("the kernel no longer tells of changes of iptables; looking instead", "every", look, "err", err)
		}
		for k.wait(ctx, look) {
			if f.flushed(ctx, canaryTables[0]) {
				tell()
			}
		}
	}()
	return lost, func() { stop(); <-done }
}

// listen reads what the kernel tells until ctx ends or it fails.
func listen(ctx context.Context, kernel *os.File, family uint8, tell func()) error {
	defer kernel.Close()
	defer context.AfterFunc(ctx, func() { kernel.Close() })()
	for buffer := make([]byte, notices); ; {
		n, err := kernel.Read(buffer)
		switch {
		case errors.Is(err, unix.ENOBUFS): // too much at a time; something was left out
			tell()
		case err != nil:
			return err
		case canaryDeleted(buffer[:n], family):
			tell()
		}
	}
}
