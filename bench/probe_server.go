package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// probeServer answers HTTP probes of pods. It knows when it has answered, so that the time until a
// status is written does not include the probe's period.
type probeServer struct {
	port   int
	server *http.Server
	done   chan error

	mu     sync.Mutex
	failed map[string]bool           // pods whose probes fail
	noted  map[string]chan time.Time // receives when the next answer of a pod has begun
}

// startProbeServer listens on an address that nodes reach.
func startProbeServer(address string) (*probeServer, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("start probe server: %w", err)
	}
	s := &probeServer{
		port: listener.Addr().(*net.TCPAddr).Port, done: make(chan error, 1),
		failed: map[string]bool{}, noted: map[string]chan time.Time{},
	}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { s.done <- s.server.Serve(listener) }()
	return s, nil
}

// ServeHTTP answers the probe of the pod that the path names.
func (s *probeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pod := strings.TrimPrefix(r.URL.Path, "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed[pod] {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if noted := s.noted[pod]; noted != nil {
		noted <- time.Now()
		delete(s.noted, pod)
	}
}

// set decides the answers to a pod's probes from now on. The channel receives the time of the first.
func (s *probeServer) set(pod string, fails bool) <-chan time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[pod] = fails
	s.noted[pod] = make(chan time.Time, 1)
	return s.noted[pod]
}

// Close stops the server.
func (s *probeServer) Close() error {
	err := s.server.Shutdown(context.Background())
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
