package connlimit

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestOnlyConnectionOfASourceIsReplaced: with many sources of one connection each, a source loses its only
// connection to its own next one, which is counted nevertheless.
func TestOnlyConnectionOfASourceIsReplaced(t *testing.T) {
	c := New(Limits{Connections: 1, PerSource: 128}, Deps{})
	for range 2 {
		first, second := c.add(fakeConn{}), c.add(fakeConn{})
		if connections, sources, _ := c.Counted(); sources != 1 || connections != 1 {
			t.Errorf("%d connections of %d sources are counted, want 1 of 1", connections, sources)
		}
		if err := errors.Join(first.Close(), second.Close()); err != nil {
			t.Error(err)
		}
	}
	if connections, sources, _ := c.Counted(); sources != 0 || connections != 0 {
		t.Errorf("%d connections of %d sources are counted after all are closed", connections, sources)
	}
}

// fakeConn is a connection of one source.
type fakeConn struct{ net.Conn }

func (fakeConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }
func (fakeConn) Close() error         { return nil }

// failing fails to accept as often as it has errors, then accepts.
type failing struct {
	net.Listener
	errs []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.errs) == 0 {
		return fakeConn{}, nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return nil, err
}

// TestAcceptRetries: a lack of descriptors passes, and a closed listener stays closed.
func TestAcceptRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported int
		c := New(Limits{Connections: 1, PerSource: 1}, Deps{Failed: func(error) { reported++ }})
		full := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
		began := time.Now()
		l := Limit(&failing{errs: []error{full, full, full, net.ErrClosed}}, c)
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) || reported != 3 || time.Since(began) != 35*time.Millisecond {
			t.Errorf("%v after %d errors and %s, want 3 errors and 35ms", err, reported, time.Since(began))
		}
	})
}

func TestSourceOf(t *testing.T) {
	for remote, want := range map[string]string{
		"10.0.0.1:80": "10.0.0.1/32", "[::ffff:10.0.0.1]:80": "10.0.0.1/32",
		"[2001:db8::1]:80": "2001:db8::/64", "[2001:db8::ffff]:1": "2001:db8::/64", "[fe80::1%eth0]:80": "fe80::/64",
		"@": "invalid Prefix", "": "invalid Prefix",
	} {
		if got := SourceOf(remote).String(); got != want {
			t.Errorf("source of %q is %s, want %s", remote, got, want)
		}
	}
}
