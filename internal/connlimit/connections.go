package connlimit

import (
	"container/list"
	"context"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Reasons to reject what a client does.
const (
	RejectRate         = "connection_rate" // too many new connections of a source
	RejectConnections  = "connections"     // too many connections; the oldest was closed
	RejectPendingBytes = "pending_bytes"   // too many incomplete requests
)

// Deps is what a server knows of sources. Without Allow, a source may open any number of connections per second;
// without Factor, all sources have the same limits.
type Deps struct {
	Allow    func(Source) bool // another connection now
	Factor   func(Source) int  // by which the limits of a source are multiplied
	Rejected func(reason string, from Source)
	// Failed is called when no connection could be accepted. It is tried again.
	Failed func(error)
}

// Connections bounds the connections that are not trusted. A full source loses its oldest such connection, so
// that idle ones of a stranger keep nothing out.
type Connections struct {
	limits  Limits
	deps    Deps
	pending atomic.Int64 // bytes, see Limits.PendingBytes

	mu       sync.Mutex
	total    int
	bySource map[Source]*sourceConns
}

// sourceConns are the connections of one source, oldest first.
type sourceConns struct {
	open       list.List // of *Conn
	handshakes *semaphore.Weighted
}

// New returns limits for the connections of one or more listeners.
func New(l Limits, d Deps) *Connections {
	if d.Allow == nil {
		d.Allow = func(Source) bool { return true }
	}
	if d.Factor == nil {
		d.Factor = func(Source) int { return 1 }
	}
	if d.Rejected == nil {
		d.Rejected = func(string, Source) {}
	}
	if d.Failed == nil {
		d.Failed = func(error) {}
	}
	return &Connections{limits: l, deps: d, bySource: map[Source]*sourceConns{}}
}

// add counts a connection. It returns nil if the source has opened too many per second.
func (c *Connections) add(accepted net.Conn) *Conn {
	from := SourceOf(accepted.RemoteAddr().String())
	if !c.deps.Allow(from) {
		c.deps.Rejected(RejectRate, from)
		return nil
	}
	added := &Conn{Conn: accepted, owner: c, from: from}
	if oldest := c.insert(added); oldest != nil {
		c.deps.Rejected(RejectConnections, oldest.from)
		_ = oldest.Close()
	}
	return added
}

// insert returns the connection to close in its place, or nil.
func (c *Connections) insert(added *Conn) (oldest *Conn) {
	factor := c.deps.Factor(added.from)
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.bySource[added.from]
	if own == nil {
		own = &sourceConns{handshakes: semaphore.NewWeighted(int64(c.limits.Handshakes * factor))}
	}
	if own.open.Len() >= c.limits.PerSource*factor {
		oldest = own.open.Front().Value.(*Conn)
	} else if c.total >= c.limits.Connections {
		oldest = c.largest().open.Front().Value.(*Conn)
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
func (c *Connections) largest() (most *sourceConns) {
	for _, own := range c.bySource {
		if most == nil || own.open.Len() > most.open.Len() {
			most = own
		}
	}
	return most
}

// drop stops counting a connection. It is called with the lock held.
func (c *Connections) drop(dropped *Conn) {
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

// Handshake waits until the source of the connection may do another TLS handshake. The handshake ends
// with ctx.
func (c *Connections) Handshake(ctx context.Context, waiting *Conn) error {
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

// Counted returns how many connections count, of how many sources, and the bytes of incomplete requests on them.
func (c *Connections) Counted() (connections, sources int, pending int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total, len(c.bySource), c.pending.Load()
}
