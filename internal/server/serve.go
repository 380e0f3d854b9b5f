package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	healthzRetry  = 5 * time.Second
	headerTimeout = 30 * time.Second
	idleTimeout   = 90 * time.Second
	// A connection lives at most this long, streams included; the reference's limit.
	longestRequest = 4 * time.Hour
	// On the way down requests get this long to finish.
	shutdownTime = 2 * time.Second
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
	return s.serveOn(ctx, "API", tls.NewListener(listener, tlsConfig), s.measured(false, s.guard.protect(s.traced(newMux(s.apiRoutes())))))
}

func (s *Server) traced(next http.Handler) http.Handler {
	if s.deps.Trace == nil {
		return next
	}
	return s.deps.Trace(next)
}

func (s *Server) serve(ctx context.Context, what, host string, port int32, handler http.Handler) error {
	listener, err := s.deps.Listen(ctx, "tcp", address(host, port))
	if err != nil {
		return fmt.Errorf("serve %s: %w", what, err)
	}
	return s.serveOn(ctx, what, listener, handler)
}

// serveOn owns the listener and returns when ctx is done or serving fails.
func (s *Server) serveOn(ctx context.Context, what string, listener net.Listener, handler http.Handler) error {
	s.deps.Log.Info("serving", "what", what, "address", listener.Addr().String())
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       longestRequest,
		WriteTimeout:      longestRequest,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    1 << 20,
		// Logs that are followed and streams last until they are told to end.
		BaseContext: func(net.Listener) context.Context { return ctx },
		// Mostly handshakes that somebody broke off.
		ErrorLog: slog.NewLogLogger(s.deps.Log.Handler(), slog.LevelDebug),
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve %s: %w", what, err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		_ = server.Close() // what has not finished is cut off
	}
	s.streams.Wait()
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", what, err)
	}
	return nil
}
