package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// connections bounds the connections on which no request was authorized yet. A full source loses its
// oldest such connection, so that idle ones of a stranger keep nothing out.
type connections struct {
	limits   limits
	sources  *sources
	rejected *rejections
	pending  atomic.Int64 // bytes, see limits.pendingBytes

	mu       sync.Mutex
	total    int
	bySource map[source]*sourceConns
}

// sourceConns are the connections of one source, oldest first.
type sourceConns struct {
	open       list.List // of *conn
	handshakes *semaphore.Weighted
}

func newConnections(l limits, s *sources, r *rejections) *connections {
	return &connections{limits: l, sources: s, rejected: r, bySource: map[source]*sourceConns{}}
}

// limitedListener accepts connections within the limits.
type limitedListener struct {
	net.Listener
	connections *connections
}

// Accept returns the next connection. It closes those of sources that open too many.
func (l limitedListener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.connections.add(accepted); c != nil {
			return c, nil
		}
		_ = accepted.Close()
	}
}

// add counts a connection. It returns nil if the source has opened too many per second.
func (c *connections) add(accepted net.Conn) *conn {
	from := sourceOf(accepted.RemoteAddr().String())
	if !c.sources.allowConnection(from) {
		c.rejected.add(rejectConnectionRate, from)
		return nil
	}
	added := &conn{Conn: accepted, owner: c, from: from}
	if oldest := c.insert(added); oldest != nil {
		c.rejected.add(rejectConnections, oldest.from)
		_ = oldest.Close()
	}
	return added
}

// insert returns the connection to close in its place, or nil.
func (c *connections) insert(added *conn) (oldest *conn) {
	factor := c.sources.factor(added.from)
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.bySource[added.from]
	if own == nil {
		own = &sourceConns{handshakes: semaphore.NewWeighted(int64(c.limits.handshakes * factor))}
	}
	if own.open.Len() >= c.limits.connectionsPerSource*factor {
		oldest = own.open.Front().Value.(*conn)
	} else if c.total >= c.limits.connections {
		oldest = c.largest().open.Front().Value.(*conn)
	}
	if oldest != nil {
		c.drop(oldest)
	}
	c.bySource[added.from] = own // drop removes the source of its last connection, which may be this one
	added.element = own.open.PushBack(added)
	c.total++
	return oldest
}

// largest returns the connections of the source that has most.
func (c *connections) largest() (most *sourceConns) {
	for _, own := range c.bySource {
		if most == nil || own.open.Len() > most.open.Len() {
			most = own
		}
	}
	return most
}

// drop stops counting a connection. It is called with the lock held.
func (c *connections) drop(dropped *conn) {
	if dropped.element == nil {
		return
	}
	own := c.bySource[dropped.from]
	own.open.Remove(dropped.element)
	dropped.element = nil
	c.total--
	if own.open.Len() == 0 {
		delete(c.bySource, dropped.from)
	}
}

// handshake waits until the source of the connection may do another TLS handshake. The handshake ends
// with ctx.
func (c *connections) handshake(ctx context.Context, waiting *conn) error {
	c.mu.Lock()
	own := c.bySource[waiting.from]
	c.mu.Unlock()
	if own == nil {
		return errClosedConnection
	}
	if err := own.handshakes.Acquire(ctx, 1); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { own.handshakes.Release(1) })
	return nil
}

var (
	errClosedConnection = errors.New("handshake: the connection was closed")
	errPendingBytes     = errors.New("read request: too many incomplete requests of clients that are not authorized")
)

// conn is a connection that counts as unauthorized until trust is called.
type conn struct {
	net.Conn
	owner   *connections
	from    source
	trusted atomic.Bool
	closed  atomic.Bool
	pending atomic.Int64
	element *list.Element // guarded by owner.mu; nil if not counted
}

// Read fails for a large request while too much was read from connections that are not trusted. Small
// requests are not affected.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 || c.trusted.Load() {
		return n, err
	}
	own, all := c.pending.Add(int64(n)), c.owner.pending.Add(int64(n))
	if c.closed.Load() { // by another goroutine, which may not have seen these bytes
		c.requestComplete()
	}
	if all > c.owner.limits.pendingBytes && own > smallRequest {
		c.owner.rejected.add(rejectPendingBytes, c.from)
		return 0, errPendingBytes
	}
	return n, err
}

// smallRequest is more than the TLS handshake and the header of all but a few requests.
const smallRequest = 64 << 10

// requestComplete is called when the header of a request was read.
func (c *conn) requestComplete() { c.owner.pending.Add(-c.pending.Swap(0)) }

// trust stops counting the connection: a request on it was authorized.
func (c *conn) trust() {
	if c.trusted.Swap(true) {
		return
	}
	c.requestComplete()
	c.owner.mu.Lock()
	c.owner.drop(c)
	c.owner.mu.Unlock()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.closed.Store(true)
	c.requestComplete()
	c.owner.mu.Lock()
	c.owner.drop(c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

type connKey struct{}

// withConn adds the connection to the context of its requests.
func withConn(ctx context.Context, accepted net.Conn) context.Context {
	if c := limitedConn(accepted); c != nil {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// limitedConn returns the connection below TLS, or nil.
func limitedConn(accepted net.Conn) *conn {
	if secure, ok := accepted.(*tls.Conn); ok {
		accepted = secure.NetConn()
	}
	c, _ := accepted.(*conn)
	return c
}

// contextConn returns the connection of a request by its context, or nil.
func contextConn(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}
