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

	"swiftlet/internal/clip"
)

// runtimeTLS does not verify the runtime's certificate: the URL of the stream, which contains a
// secret, was read from the runtime's own socket.
var runtimeTLS = &tls.Config{InsecureSkipVerify: true}

// runtimeTransport opens connections to the runtime that end with the context of the request: the runtime may
// accept a stream and never answer.
var runtimeTransport = &http.Transport{TLSClientConfig: runtimeTLS, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		context.AfterFunc(ctx, func() { conn.Close() })
	}
	return conn, err
}}

// dialTimeout is how long the runtime may take to accept a stream that it prepared.
const dialTimeout = 30 * time.Second

// tunnel serves a client that tunnels SPDY through a WebSocket.
func (s *Server) tunnel(w http.ResponseWriter, r *http.Request, location string, err error) {
	s.stream(w, r, location, err, func(w http.ResponseWriter, r *http.Request, to *url.URL) {
		backend, err := dialSPDY(r.Context(), to, forward.PortForwardV1Name)
		if err != nil {
			streamErrors{s}.Error(w, r, err)
			return
		}
		defer backend.Close()
		upgrader := websocket.Upgrader{
			Subprotocols: []string{forward.WebsocketsSPDYTunnelingPortForwardV1},
			// auth has checked the origin.
			CheckOrigin: func(*http.Request) bool { return true },
		}
		client, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			s.deps.Log.Info("serve stream: failed", "path", clip.Text(r.URL.Path, clip.Name), "err", clip.Error(err, clip.Message)) // the upgrader has responded
			return
		}
		copyBoth(portforward.NewTunnelingConnection("server", client), backend)
	})
}

// copyBoth copies in both directions until one side ends, then closes both.
func copyBoth(a, b io.ReadWriteCloser) {
	done := make(chan struct{}, 2)
	copyOne := func(to, from io.ReadWriteCloser) {
		_, _ = io.Copy(to, from) // the tunneled streams report their own errors
		done <- struct{}{}
	}
	go copyOne(a, b)
	go copyOne(b, a)
	<-done
	a.Close()
	b.Close()
	<-done
}

// dialSPDY opens a SPDY connection to the runtime with the given subprotocol.
func dialSPDY(ctx context.Context, to *url.URL, protocol string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := dialRuntime(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("dial runtime's stream: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	upgraded, err := upgradeSPDY(conn, to, protocol)
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("upgrade runtime's stream: %w", err)
	}
	return upgraded, nil
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

// upgradeSPDY sends the upgrade request and reads the response.
func upgradeSPDY(conn net.Conn, to *url.URL, protocol string) (net.Conn, error) {
	request := &http.Request{Method: http.MethodPost, URL: to, Host: to.Host, Header: http.Header{
		"Connection":                {"Upgrade"},
		"Upgrade":                   {"SPDY/3.1"},
		"X-Stream-Protocol-Version": {protocol},
	}}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10))
		return nil, fmt.Errorf("upgrade connection to runtime: %s: %s", response.Status, text)
	}
	return &bufferedConn{conn, reader}, nil
}

// bufferedConn is a connection with data that is already read into a buffer.
type bufferedConn struct {
	net.Conn
	reader *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }
