package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// TestProxy connects from the test's side first, as the suite does. Each client of the socket must be
// connected to one of those connections, in both directions, until it is closed.
func TestProxy(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "csi.sock")
	port := freePort(t)
	o, err := parse([]string{"-v=5", "-nodeid=n", "-endpoint=" + socket, "-proxy-endpoint=tcp://" + port})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, o) }()

	for n := range 2 {
		test := dial(t, "tcp", port)
		caller := dial(t, "unix", socket)
		sendAndReceive(t, caller, test, fmt.Sprintf("call %d", n))
		sendAndReceive(t, test, caller, fmt.Sprintf("answer %d", n))
		caller.Close()
		if _, err := test.Read(make([]byte, 1)); err == nil {
			t.Error("the test's connection is open after the client's was closed")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// dial retries until the endpoint accepts connections.
func dial(t *testing.T, network, address string) net.Conn {
	t.Helper()
	for {
		conn, err := net.Dial(network, address)
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			return conn
		}
		select {
		case <-t.Context().Done():
			t.Fatal(err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func sendAndReceive(t *testing.T, from, to net.Conn, what string) {
	t.Helper()
	if _, err := fmt.Fprintln(from, what); err != nil {
		t.Fatal(err)
	}
	if received, err := bufio.NewReader(to).ReadString('\n'); err != nil || received != what+"\n" {
		t.Errorf("received %q, %v", received, err)
	}
}
