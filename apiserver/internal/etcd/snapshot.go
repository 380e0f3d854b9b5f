package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	// socketName is that of the socket in the data directory on which a running member serves snapshots.
	socketName = "snapshot.sock"
	// snapshotLimit is long enough for a store of the largest size on a slow disk.
	snapshotLimit = 10 * time.Minute
)

// ErrNotServed means that no running member serves snapshots.
var ErrNotServed = errors.New("no running member")

// WriteSnapshot writes a consistent copy of the store, followed by its SHA-256.
func (m *Member) WriteSnapshot(ctx context.Context, w io.Writer) error {
	client := m.Client()
	defer client.Close()
	snapshot, err := client.SnapshotWithVersion(clientv3.WithRequireLeader(ctx))
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	defer snapshot.Snapshot.Close()
	if _, err := io.Copy(w, snapshot.Snapshot); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// ServeSnapshots writes a snapshot to each program that connects to the socket in dir, which only its owner may
// use, until ctx is done. One that ends early lacks its SHA-256.
func (m *Member) ServeSnapshots(ctx context.Context, dir string) error {
	listener, err := listenIn(dir)
	if err != nil {
		return fmt.Errorf("serve snapshots: %w", err)
	}
	var serving errgroup.Group
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		if err != nil {
			serveErr := serving.Wait()
			if ctx.Err() != nil {
				return serveErr
			}
			return fmt.Errorf("serve snapshots: %w", err)
		}
		serving.Go(func() error {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(snapshotLimit))
			_ = m.WriteSnapshot(ctx, conn) // the client notices that the end is missing
			return nil
		})
	}
}

// FetchSnapshot writes a snapshot of the running member whose socket is in dir. The error is ErrNotServed if there
// is none.
func FetchSnapshot(ctx context.Context, dir string, w io.Writer) error {
	conn, err := dialIn(ctx, dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return ErrNotServed
	}
	if err != nil {
		return fmt.Errorf("connect to running API server: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(snapshotLimit))
	if _, err := io.Copy(w, conn); err != nil {
		return fmt.Errorf("read snapshot of running API server: %w", err)
	}
	return nil
}

// InUse reports whether a process has the store in dir open.
func InUse(dir string) (bool, error) {
	f, err := os.Open(filepath.Join(dir, "member", "snap", "db"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() // releases the lock
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// listenIn replaces the socket that a killed process has left.
func listenIn(dir string) (net.Listener, error) {
	if err := os.Remove(filepath.Join(dir, socketName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var listener net.Listener
	err := shortened(dir, func(socket string) (err error) {
		// The socket stays: its path would lead elsewhere once the descriptor is closed.
		if listener, err = net.Listen("unix", socket); err != nil {
			return err
		}
		listener.(*net.UnixListener).SetUnlinkOnClose(false)
		return os.Chmod(filepath.Join(dir, socketName), 0o600)
	})
	return listener, err
}

func dialIn(ctx context.Context, dir string) (conn net.Conn, err error) {
	err = shortened(dir, func(socket string) (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", socket)
		return err
	})
	return conn, err
}

// shortened calls do with a path of the socket that fits the 107 bytes of a socket's address.
func shortened(dir string, do func(socket string) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return do(filepath.Join("/proc/self/fd", strconv.Itoa(int(d.Fd())), socketName))
}
