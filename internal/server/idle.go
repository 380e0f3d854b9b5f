package server

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// keptWriter hands out the client's connection, once a handler takes it over, as one that
// is closed when it was idle for too long, and when ctx ends: the HTTP server forgets a
// connection that was taken over.
type keptWriter struct {
	http.ResponseWriter
	ctx   context.Context
	clock clock.PassiveClock
	idle  time.Duration // 0: for ever
}

func (w *keptWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack implements http.Hijacker.
func (w *keptWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	context.AfterFunc(w.ctx, func() { conn.Close() })
	kept := &keptConn{Conn: conn, from: conn, clock: w.clock, idle: w.idle}
	if n := buffered.Reader.Buffered(); n > 0 {
		early, err := buffered.Reader.Peek(n)
		if err != nil {
			conn.Close()
			return nil, nil, err
		}
		kept.from = io.MultiReader(bytes.NewReader(bytes.Clone(early)), conn)
	}
	return kept, bufio.NewReadWriter(bufio.NewReader(kept), bufio.NewWriter(kept)), nil
}

// keptConn is a connection that breaks when nothing goes through it for a while.
type keptConn struct {
	net.Conn
	from  io.Reader // Conn, after what was read of it already
	clock clock.PassiveClock
	idle  time.Duration
}

func (c *keptConn) Read(p []byte) (int, error) {
	if err := c.use(); err != nil {
		return 0, err
	}
	return c.from.Read(p)
}

func (c *keptConn) Write(p []byte) (int, error) {
	if err := c.use(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// use puts the end off, for both directions: output alone keeps a connection alive.
func (c *keptConn) use() error {
	if c.idle == 0 {
		return nil
	}
	return c.Conn.SetDeadline(c.clock.Now().Add(c.idle))
}
