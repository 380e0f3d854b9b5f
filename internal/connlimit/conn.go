package connlimit

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
)

var (
	errClosedConnection = errors.New("handshake: the connection was closed")
	errPendingBytes     = errors.New("read request: too many incomplete requests of clients that are not authorized")
)

// Conn is a connection that counts until Trust is called.
type Conn struct {
	net.Conn
	owner   *Connections
	from    Source
	trusted atomic.Bool
	closed  atomic.Bool
	pending atomic.Int64
	element *list.Element // guarded by owner.mu; nil if not counted
}

// Read fails for a large request while too much was read from connections that are not trusted. Small
// requests are not affected.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 || c.trusted.Load() {
		return n, err
	}
	own, all := c.pending.Add(int64(n)), c.owner.pending.Add(int64(n))
	if c.closed.Load() { // by another goroutine, which may not have seen these bytes
		c.RequestComplete()
	}
	if limit := c.owner.limits.PendingBytes; limit > 0 && all > limit && own > smallRequest {
		c.owner.deps.Rejected(RejectPendingBytes, c.from)
		return 0, errPendingBytes
	}
	return n, err
}

// smallRequest is more than the TLS handshake and the header of all but a few requests.
const smallRequest = 64 << 10

// RequestComplete is called when the header of a request was read.
func (c *Conn) RequestComplete() { c.owner.pending.Add(-c.pending.Swap(0)) }

// Trust stops counting the connection: a request on it was authorized.
func (c *Conn) Trust() {
	if c.trusted.Swap(true) {
		return
	}
	c.RequestComplete()
	c.owner.mu.Lock()
	c.owner.drop(c)
	c.owner.mu.Unlock()
}

// Source returns where the client connects from.
func (c *Conn) Source() Source { return c.from }

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.closed.Store(true)
	c.RequestComplete()
	c.owner.mu.Lock()
	c.owner.drop(c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

type connKey struct{}

// WithConn adds the connection to the context of its requests.
func WithConn(ctx context.Context, accepted net.Conn) context.Context {
	if c := Of(accepted); c != nil {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// Of returns the connection below TLS, or nil.
func Of(accepted net.Conn) *Conn {
	if secure, ok := accepted.(*tls.Conn); ok {
		accepted = secure.NetConn()
	}
	c, _ := accepted.(*Conn)
	return c
}

// FromContext returns the connection of a request by its context, or nil.
func FromContext(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
