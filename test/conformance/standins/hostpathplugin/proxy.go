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

// runProxy joins each connection to one endpoint with the next to the other, until ctx is
// done. The test connects ahead of need, so that callers on the node need not wait.
func runProxy(ctx context.Context, endpoint, other string) error {
	near, err := listen(endpoint)
	if err != nil {
		return err
	}
	far, err := listen(other)
	if err != nil {
		return errors.Join(err, near.Close())
	}
	stop := context.AfterFunc(ctx, func() { near.Close(); far.Close() })
	defer stop()
	for {
		caller, err := near.Accept()
		if err != nil {
			return ended(ctx, err)
		}
		test, err := far.Accept()
		if err != nil {
			caller.Close()
			return ended(ctx, err)
		}
		go join(ctx, caller, test)
	}
}

// ended makes no error of an end that was asked for.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("accept: %w", err)
}

// listen opens an endpoint, in place of a socket that a killed program has left.
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

// join copies both ways until one side ends, then ends the other.
func join(ctx context.Context, a, b net.Conn) {
	closeBoth := func() { a.Close(); b.Close() }
	defer closeBoth()
	stop := context.AfterFunc(ctx, closeBoth)
	defer stop()
	var copies sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		copies.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // that it ended is all there is to know
			closeBoth()
		})
	}
	copies.Wait()
}
