package scale

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// relay forwards TCP connections of nodes to the API server and counts their bytes. If the API server does not
// accept a connection, the relay resets that of the node, as a load balancer does.
type relay struct {
	target string
	own    string // its address

	sent, received atomic.Int64 // by nodes
	refused        atomic.Int64 // connections that found no API server

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	open     map[net.Conn]bool
	closed   bool
	running  sync.WaitGroup
}

func newRelay(target string) (*relay, error) {
	r := &relay{target: target, own: "127.0.0.1:0", open: map[net.Conn]bool{}}
	return r, r.listen()
}

// address is where nodes connect to.
func (r *relay) address() string { return r.own }

// listen accepts connections, also again after refuse.
func (r *relay) listen() error {
	listener, err := net.Listen("tcp", r.own)
	if err != nil {
		return fmt.Errorf("start relay: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener, r.own = listener, listener.Addr().String()
	r.running.Go(func() { r.accept(listener) })
	return nil
}

// refuse closes the port, so that connections are refused as by a machine on which no API server runs.
func (r *relay) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		_ = r.listener.Close()
		r.listener = nil
	}
}

// close ends all connections.
func (r *relay) close() {
	r.refuse()
	r.mu.Lock()
	r.closed = true
	for c := range r.open {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.running.Wait()
}

func (r *relay) accept(listener net.Listener) {
	for {
		node, err := listener.Accept()
		if err != nil {
			return // closed
		}
		r.running.Go(func() { r.forward(node) })
	}
}

func (r *relay) forward(node net.Conn) {
	defer r.forget(node)
	if !r.remember(node) {
		return
	}
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", r.target)
	if err != nil {
		r.refused.Add(1)
		_ = node.(*net.TCPConn).SetLinger(0) // resets the connection when it is closed
		return
	}
	defer r.forget(server)
	if !r.remember(server) {
		return
	}
	var directions sync.WaitGroup
	copyAll := func(to, from net.Conn, count *atomic.Int64) {
		_, _ = io.Copy(to, countedReader{from, count}) // an error ends the connection, as the end of a stream does
		_, _ = to.Close(), from.Close()
	}
	directions.Go(func() { copyAll(server, node, &r.sent) })
	directions.Go(func() { copyAll(node, server, &r.received) })
	directions.Wait()
}

// remember reports whether the relay is still open.
func (r *relay) remember(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.open[c] = true
	}
	return !r.closed
}

func (r *relay) forget(c net.Conn) {
	_ = c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
}

// countedReader counts at each read, because the bytes of a connection that stays open count, too.
type countedReader struct {
	io.Reader
	count *atomic.Int64
}

func (c countedReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.count.Add(int64(n))
	return n, err
}

// bytes is what nodes have sent and received.
func (r *relay) bytes() int64 { return r.sent.Load() + r.received.Load() }
