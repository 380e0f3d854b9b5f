package server

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"swiftlet/internal/connlimit"
)

// One of the addresses is on no interface of this machine.
func TestListenOnSeveralAddresses(t *testing.T) {
	l, err := listen(t.Context(), connlimit.New(connlimit.ForProcess(), connlimit.Deps{}), netip.MustParseAddrPort("127.0.0.1:0"), netip.MustParseAddrPort("127.0.0.2:0"), netip.MustParseAddrPort("198.51.100.7:0"))
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range l.(*merged).all[:2] {
		client, err := net.Dial("tcp", each.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if !keptAlive(t, server) {
			t.Errorf("no keep-alive on %s", server.LocalAddr())
		}
		if server.LocalAddr().String() != each.Addr().String() {
			t.Errorf("accepted on %s, want %s", server.LocalAddr(), each.Addr())
		}
		server.Close()
		if _, err := io.ReadAll(client); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after close: %v", err)
	}
}

// keptAlive reports whether the kernel looks after the other end of a connection.
func keptAlive(t *testing.T, conn net.Conn) bool {
	t.Helper()
	if limited := connlimit.Of(conn); limited != nil {
		conn = limited.Conn
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	on := 0
	if controlErr := raw.Control(func(fd uintptr) { on, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE) }); controlErr != nil || err != nil {
		t.Fatal(controlErr, err)
	}
	return on != 0
}

func TestListenReportsAPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := listen(t.Context(), connlimit.New(connlimit.ForProcess(), connlimit.Deps{}), netip.MustParseAddrPort("127.0.0.2:0"), taken.Addr().(*net.TCPAddr).AddrPort()); err == nil {
		t.Error("no error")
	}
}
