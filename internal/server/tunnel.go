package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
	forward "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/tools/portforward"
)

// runtimeTLS is how a runtime that serves its streams over TLS is trusted: its address,
// and the secret in it, came over its own socket.
var runtimeTLS = &tls.Config{InsecureSkipVerify: true}

// dialTime is how long the runtime may take to accept a stream that it prepared.
const dialTime = 30 * time.Second

// tunnel serves a client that speaks SPDY within a WebSocket.
func (s *Server) tunnel(w http.ResponseWriter, r *http.Request, location string, err error) {
	s.stream(w, r, location, err, func(w http.ResponseWriter, r *http.Request, to *url.URL) {
		backend, err := dialSPDY(r.Context(), to, forward.PortForwardV1Name)
		if err != nil {
			streamTrouble{s}.Error(w, r, err)
			return
		}
		defer backend.Close()
		upgrader := websocket.Upgrader{
			Subprotocols: []string{forward.WebsocketsSPDYTunnelingPortForwardV1},
			// Who may connect was decided by the guard, not by a page's origin.
			CheckOrigin: func(*http.Request) bool { return true },
		}
		client, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			s.deps.Log.Info("stream not served", "path", r.URL.Path, "err", err) // the upgrader has answered
			return
		}
		join(portforward.NewTunnelingConnection("server", client), backend)
	})
}

// join copies both ways until either side ends, and closes both.
func join(a, b io.ReadWriteCloser) {
	done := make(chan struct{}, 2)
	pass := func(to, from io.ReadWriteCloser) {
		_, _ = io.Copy(to, from) // an end is an end; the streams within tell their own errors
		done <- struct{}{}
	}
	go pass(a, b)
	go pass(b, a)
	<-done
	a.Close()
	b.Close()
	<-done
}

// dialSPDY opens a connection on which the runtime speaks SPDY with the given protocol.
func dialSPDY(ctx context.Context, to *url.URL, protocol string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := dialRuntime(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("dial runtime's stream: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	spoken, err := askSPDY(conn, to, protocol)
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("upgrade runtime's stream: %w", err)
	}
	return spoken, nil
}

func dialRuntime(ctx context.Context, to *url.URL) (net.Conn, error) {
	port := to.Port()
	if to.Scheme == "https" {
		if port == "" {
			port = "443"
		}
		dialer := tls.Dialer{Config: runtimeTLS}
		return dialer.DialContext(ctx, "tcp", net.JoinHostPort(to.Hostname(), port))
	}
	if port == "" {
		port = "80"
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", net.JoinHostPort(to.Hostname(), port))
}

// askSPDY sends the request for the upgrade and reads the answer.
func askSPDY(conn net.Conn, to *url.URL, protocol string) (net.Conn, error) {
	request := &http.Request{Method: http.MethodPost, URL: to, Host: to.Host, Header: http.Header{
		"Connection":                {"Upgrade"},
		"Upgrade":                   {"SPDY/3.1"},
		"X-Stream-Protocol-Version": {protocol},
	}}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	from := bufio.NewReader(conn)
	response, err := http.ReadResponse(from, request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10))
		return nil, fmt.Errorf("upgrade connection to runtime: %s: %s", response.Status, text)
	}
	return &bufferedConn{conn, from}, nil
}

// bufferedConn is a connection of which some was read already.
type bufferedConn struct {
	net.Conn
	from *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.from.Read(p) }
