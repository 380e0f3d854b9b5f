package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// runProxy connects each client of one endpoint to the next client of the other, until ctx is done.
// The test connects in advance, so that clients on the node need not wait.
func runProxy(ctx context.Context, endpoint, other string) error {
	local, err := listen(endpoint)
	if err != nil {
		return err
	}
	remote, err := listen(other)
	if err != nil {
		return errors.Join(err, local.Close())
	}
	stop := context.AfterFunc(ctx, func() { local.Close(); remote.Close() })
	defer stop()
	for {
		caller, err := local.Accept()
		if err != nil {
			return acceptError(ctx, err)
		}
		test, err := remote.Accept()
		if err != nil {
			caller.Close()
			return acceptError(ctx, err)
		}
		go copyBoth(ctx, caller, test)
	}
}

// acceptError returns nil if ctx is done.
func acceptError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("accept: %w", err)
}

// listen listens on an endpoint. It replaces a socket that a killed program left.
func listen(endpoint string) (net.Listener, error) {
	network, at := address(endpoint)
	if network == "unix" {
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return nil, err
		}
		if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return net.Listen(network, at)
}

// copyBoth copies in both directions until one side is closed, then closes the other.
func copyBoth(ctx context.Context, a, b net.Conn) {
	closeBoth := func() { a.Close(); b.Close() }
	defer closeBoth()
	stop := context.AfterFunc(ctx, closeBoth)
	defer stop()
	var copies sync.WaitGroup
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		copies.Go(func() {
			_, _ = io.Copy(pair[0], pair[1]) // only the end matters
			closeBoth()
		})
	}
	copies.Wait()
}
