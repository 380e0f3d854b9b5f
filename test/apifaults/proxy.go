// Package apifaults is a proxy between a node and its API server that injects faults: it rejects, delays,
// cuts and changes requests and responses, and counts them.
package apifaults

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Fault handles a request in place of the API server, or passes it on to next.
type Fault func(w http.ResponseWriter, r *http.Request, next http.Handler)

// Proxy forwards the requests of one node with the node's own credentials.
type Proxy struct {
	forward  *httputil.ReverseProxy
	server   *http.Server
	listener net.Listener
	done     chan error

	fault       atomic.Pointer[Fault]
	certificate atomic.Pointer[tls.Certificate]

	mu       sync.Mutex
	requests map[string]int
	running  map[*http.Request]context.CancelFunc
	conns    map[net.Conn]bool
}

// Start listens on a free port of the host address. node are the connection settings of the node, with
// which requests are sent to the API server; certificate is that of the proxy.
func Start(host string, node *rest.Config, certificate tls.Certificate) (*Proxy, error) {
	server, err := url.Parse(node.Host)
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	transport, err := rest.TransportFor(node)
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	p := &Proxy{listener: listener, done: make(chan error, 1), requests: map[string]int{}, running: map[*http.Request]context.CancelFunc{}, conns: map[net.Conn]bool{}}
	p.certificate.Store(&certificate)
	quiet := log.New(io.Discard, "", 0)
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			r.Out.Header.Del("Authorization") // the proxy has the node's credentials
		},
		Transport: transport, FlushInterval: -1, ErrorLog: quiet,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{Handler: p, ErrorLog: quiet, ConnState: p.track, TLSConfig: &tls.Config{
		ClientAuth:     tls.RequestClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.certificate.Load(), nil },
	}}
	go func() { p.done <- p.server.ServeTLS(listener, "", "") }()
	return p, nil
}

// URL is the address of the proxy.
func (p *Proxy) URL() string { return "https://" + p.listener.Addr().String() }

// Close closes all connections.
func (p *Proxy) Close() error {
	err := p.server.Close()
	if served := <-p.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// Set injects a fault from now on; nil ends it. It cuts the requests that are running, watches above all,
// so that the node meets the change at once.
func (p *Proxy) Set(fault Fault) {
	if fault == nil {
		p.fault.Store(nil)
	} else {
		p.fault.Store(&fault)
	}
	p.Cut()
}

// SetCertificate replaces the certificate of the proxy and closes all connections.
func (p *Proxy) SetCertificate(c tls.Certificate) {
	p.certificate.Store(&c)
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close() // it may be closed already
	}
}

func (p *Proxy) track(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateNew:
		p.conns[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(p.conns, conn)
	}
}

// Cut ends the requests that are running.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cancel := range p.running {
		cancel()
	}
}

// Requests returns the number of requests since the last call, by method and kind of object.
func (p *Proxy) Requests() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	counted := p.requests
	p.requests = map[string]int{}
	return counted
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	p.mu.Lock()
	p.requests[kindOf(r)]++
	p.running[r] = cancel
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.running, r)
		p.mu.Unlock()
	}()
	if fault := p.fault.Load(); fault != nil {
		(*fault)(w, r, p.forward)
		return
	}
	p.forward.ServeHTTP(w, r)
}
