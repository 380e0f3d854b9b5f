package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
	"k8s.io/klog/v2"

	"swiftlet/internal/connlimit"
)

// listen listens on several addresses as one. An address need not exist yet: that of the bridge comes with the
// first pod. Connections to the first address, that of loopback, are not limited, so that the person in front of the
// node can always connect. All others count in limited: every pod has a token, so being authenticated is no reason
// to have any number of connections.
func listen(ctx context.Context, limited *connlimit.Connections, addresses ...netip.AddrPort) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, socket syscall.RawConn) (err error) {
		if controlErr := socket.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1) }); controlErr != nil {
			return controlErr
		}
		return err
	}}
	m := &merged{accepted: make(chan accepted), closed: make(chan struct{})}
	for i, address := range addresses {
		l, err := config.Listen(ctx, "tcp", address.String())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen: %w", err), m.Close())
		}
		if i > 0 {
			l = connlimit.Limit(l, limited)
		}
		m.all = append(m.all, l)
	}
	for _, l := range m.all {
		go m.accept(l) // until it is closed
	}
	return m, nil
}

// limitLogs is how often rejected connections are logged at most.
const limitLogs = 10 * time.Second

// podConnections bounds the connections of pods, which share the descriptors of the process with the store.
func podConnections(ctx context.Context) *connlimit.Connections {
	log := klog.FromContext(ctx)
	rejected, failed := rate.Sometimes{Interval: limitLogs}, rate.Sometimes{Interval: limitLogs}
	return connlimit.New(connlimit.ForProcess(), connlimit.Deps{
		Rejected: func(reason string, from connlimit.Source) {
			rejected.Do(func() {
				log.Info("server: closed a connection of a pod that has too many", "reason", reason, "client", from.Addr())
			})
		},
		Failed: func(err error) { failed.Do(func() { log.Error(err, "server: accept failed") }) },
	})
}

// merged accepts the connections of all listeners.
type merged struct {
	all      []net.Listener
	accepted chan accepted
	closed   chan struct{}
	close    sync.Once
}

type accepted struct {
	conn net.Conn
	err  error
}

func (m *merged) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		select {
		case m.accepted <- accepted{conn, err}:
		case <-m.closed:
			if err == nil {
				conn.Close()
			}
			return
		}
	}
}

// Accept implements net.Listener.
func (m *merged) Accept() (net.Conn, error) {
	select {
	case a := <-m.accepted:
		return a.conn, a.err
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (m *merged) Close() error {
	var err error
	m.close.Do(func() {
		close(m.closed)
		for _, l := range m.all {
			err = errors.Join(err, l.Close())
		}
	})
	return err
}

// Addr returns the first address.
func (m *merged) Addr() net.Addr { return m.all[0].Addr() }
