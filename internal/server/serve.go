package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"time"

	"swiftlet/internal/connlimit"
)

const (
	healthzRetryDelay = 5 * time.Second
	// readHeaderTimeout limits the TLS handshake, too. A busy node may need seconds for one.
	readHeaderTimeout = 30 * time.Second
	idleTimeout       = 90 * time.Second
	// requestTimeout limits requests, streams included. It is the reference kubelet's limit.
	requestTimeout = 4 * time.Hour
	// maxStreams is the number of requests on one connection of HTTP/2. Clients that need more open
	// another connection.
	maxStreams = 100
	// shutdownTimeout is how long requests may take to finish when the server stops.
	shutdownTimeout = 2 * time.Second
)

func (s *Server) serveAPI(ctx context.Context) error {
	tlsConfig, err := s.tlsConfig()
	if err != nil {
		return err
	}
	kc := s.cfg.Kubelet
	listener, err := s.deps.Listen(ctx, "tcp", address(kc.Address, kc.Port))
	if err != nil {
		return fmt.Errorf("serve API: %w", err)
	}
	limited := tls.NewListener(connlimit.Limit(listener, s.connections), tlsConfig)
	return s.serveOn(ctx, "API", limited, s.withMetrics(false, s.auth.protect(s.withTracing(newMux(s.apiRoutes())))))
}

func (s *Server) withTracing(next http.Handler) http.Handler {
	if s.deps.Trace == nil {
		return next
	}
	return s.deps.Trace(next)
}

// serve serves without TLS and without authorization. The connections are bounded, but not their rate: a program
// that opens many must not reject those of others on the same address, such as health checks.
func (s *Server) serve(ctx context.Context, name, host string, port int32, handler http.Handler) error {
	listener, err := s.deps.Listen(ctx, "tcp", address(host, port))
	if err != nil {
		return fmt.Errorf("serve %s: %w", name, err)
	}
	unlimited := s.cfg.limits
	unlimited.connectionRate = rate{math.MaxFloat64, 1}
	limited := connlimit.Limit(listener, s.newConnections(unlimited, newSources(s.deps.Clock, unlimited)))
	return s.serveOn(ctx, name, limited, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connlimit.FromContext(r.Context()).RequestComplete()
		handler.ServeHTTP(w, r)
	}))
}

// newConnections bounds connections by what is known of their sources.
func (s *Server) newConnections(l limits, known *sources) *connlimit.Connections {
	return connlimit.New(l.forConnections(), connlimit.Deps{
		Allow: known.allowConnection, Factor: known.factor, Rejected: s.rejected.add,
		Failed: func(err error) {
			s.rejected.record(slog.LevelError, failAccept, "server: accept failed", "err", err)
		},
	})
}

// serveOn serves until ctx is done or serving fails. It closes the listener.
func (s *Server) serveOn(ctx context.Context, name string, listener net.Listener, handler http.Handler) error {
	s.deps.Log.Info("server: listening", "name", name, "address", listener.Addr().String())
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    1 << 20, // commands of exec are part of the URL
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ConnContext:       connlimit.WithConn,
		// Canceling ctx ends streams and logs that are followed.
		BaseContext: func(net.Listener) context.Context { return ctx },
		// These are mostly aborted TLS handshakes.
		ErrorLog: slog.NewLogLogger(s.deps.Log.Handler(), slog.LevelDebug),
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve %s: %w", name, err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		_ = server.Close() // aborts the requests that have not finished
	}
	s.awaitStreams()
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", name, err)
	}
	return nil
}
