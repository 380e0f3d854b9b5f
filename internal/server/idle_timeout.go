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

// idleTimeoutWriter hijacks connections. It closes them when they are idle for too long, and
// when ctx is done, because http.Server does not close hijacked connections.
type idleTimeoutWriter struct {
	http.ResponseWriter
	ctx     context.Context
	clock   clock.PassiveClock
	timeout time.Duration // 0 disables it
}

func (w *idleTimeoutWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack implements http.Hijacker.
func (w *idleTimeoutWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	context.AfterFunc(w.ctx, func() { conn.Close() })
	timed := &idleTimeoutConn{Conn: conn, reader: conn, clock: w.clock, timeout: w.timeout}
	if n := buffered.Reader.Buffered(); n > 0 {
		pending, err := buffered.Reader.Peek(n)
		if err != nil {
			conn.Close()
			return nil, nil, err
		}
		timed.reader = io.MultiReader(bytes.NewReader(bytes.Clone(pending)), conn)
	}
	return timed, bufio.NewReadWriter(bufio.NewReader(timed), bufio.NewWriter(timed)), nil
}

// idleTimeoutConn fails when nothing was read or written for the timeout.
type idleTimeoutConn struct {
	net.Conn
	reader  io.Reader // what is already buffered, then Conn
	clock   clock.PassiveClock
	timeout time.Duration
}

func (c *idleTimeoutConn) Read(p []byte) (int, error) {
	if err := c.extendDeadline(); err != nil {
		return 0, err
	}
	return c.reader.Read(p)
}

func (c *idleTimeoutConn) Write(p []byte) (int, error) {
	if err := c.extendDeadline(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// extendDeadline extends the deadline of both directions, so output alone keeps a connection
// alive.
func (c *idleTimeoutConn) extendDeadline() error {
	if c.timeout == 0 {
		return nil
	}
	return c.Conn.SetDeadline(c.clock.Now().Add(c.timeout))
}
