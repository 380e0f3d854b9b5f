package scale

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// echo returns the address of a server that returns what it receives, and a function that stops it.
func echo(t *testing.T) (string, func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	stop := func() { listener.Close() }
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

func TestRelayCountsBothDirections(t *testing.T) {
	target, stop := echo(t)
	r, err := newRelay(target)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	c, err := net.Dial("tcp", r.address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text := make([]byte, 5)
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, text); err != nil || string(text) != "hello" {
		t.Fatalf("read %q and %v", text, err)
	}
	if r.bytes() != 10 {
		t.Errorf("counted %d bytes, want 10", r.bytes())
	}

	stop()
	if reset, err := net.Dial("tcp", r.address()); err == nil { // it may be reset before Dial returns
		defer reset.Close()
		if _, err := reset.Read(text); err == nil {
			t.Error("a connection without an API server is not ended")
		}
	}
	if r.refused.Load() != 1 {
		t.Errorf("counted %d connections that found no API server, want 1", r.refused.Load())
	}
}

func TestRelayRefusesAndListensAgain(t *testing.T) {
	target, _ := echo(t)
	r, err := newRelay(target)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	r.refuse()
	if _, err := net.Dial("tcp", r.address()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("error is %v, want %v", err, syscall.ECONNREFUSED)
	}
	if err := r.listen(); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", r.address())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
