package fakecri

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Option is an option of Start.
type Option func(*Server)

// WithoutEvents disables the event stream.
func WithoutEvents() Option { return func(s *Server) { s.noEvents = true } }

// WithNow sets the clock for timestamps of objects and events.
func WithNow(now func() time.Time) Option { return func(s *Server) { s.now = now } }

// InMemory makes the runtime reachable only by Dial, without a socket, so that it works with
// synctest.
func InMemory() Option { return func(s *Server) { s.inMemory = true } }

// WithoutCalls makes the runtime forget calls, for runs that are long or have many runtimes. Calls and Count
// then return nothing.
func WithoutCalls() Option { return func(s *Server) { s.forgetCalls = true } }

// WithImages adds images of 1 MiB to the node.
func WithImages(names ...string) Option {
	return func(s *Server) {
		for _, name := range names {
			s.AddImage(name, 1<<20)
		}
	}
}

// Server is a fake runtime. All methods may be called from any goroutine.
type Server struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer

	// Events controls the event stream.
	Events *Events

	socket   string
	noEvents bool
	inMemory bool
	// forgetCalls: calls stays empty.
	forgetCalls bool
	now         func() time.Time

	mu          sync.Mutex
	memory      *bufconn.Listener // set if inMemory
	interceptor Interceptor
	grpc        *grpc.Server
	served      sync.WaitGroup
	calls       []Call
	faults      map[string]*Fault
	nextID      int
	sandboxes   map[string]*runtimeapi.PodSandboxStatus
	containers  map[string]*container
	images      map[string]*runtimeapi.Image
	registry    map[string]uint64
	onStart     func(*runtimeapi.ContainerStatus) (exitCode int32, exits bool)
	onExec      func(*runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error)
}

// Start starts a fake runtime that is stopped when the test ends.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	// Not t.TempDir: the path of a socket is limited to 107 characters.
	dir, err := os.MkdirTemp("", "fakecri")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(filepath.Join(dir, "cri.sock"), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		_ = os.RemoveAll(dir)
	})
	return s
}

// New starts a fake runtime outside of a test. The caller stops it.
func New(socket string, options ...Option) (*Server, error) {
	s := &Server{
		socket:     socket,
		now:        time.Now,
		faults:     map[string]*Fault{},
		sandboxes:  map[string]*runtimeapi.PodSandboxStatus{},
		containers: map[string]*container{},
		images:     map[string]*runtimeapi.Image{},
		registry:   map[string]uint64{},
		Events:     newEvents(),
	}
	for _, option := range options {
		option(s)
	}
	return s, s.Restart()
}

// Endpoint is the runtime's endpoint, for cri.Config.
func (s *Server) Endpoint() string { return "unix://" + s.socket }

// Dial connects to a runtime with the option InMemory.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	s.mu.Lock()
	listener := s.memory
	s.mu.Unlock()
	return listener.DialContext(ctx)
}

// Stop stops the runtime like a crash: containers keep running. Hanging calls end.
func (s *Server) Stop() {
	s.mu.Lock()
	server := s.grpc
	s.grpc = nil
	s.mu.Unlock()
	if server != nil {
		s.Events.Break()
		server.Stop()
		s.served.Wait()
	}
}

// Restart starts a stopped runtime again.
func (s *Server) Restart() error {
	listener, err := s.listen()
	if err != nil {
		return fmt.Errorf("start fake runtime: %w", err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(s.intercept), grpc.StreamInterceptor(s.interceptStream))
	runtimeapi.RegisterRuntimeServiceServer(server, s)
	runtimeapi.RegisterImageServiceServer(server, s)
	s.mu.Lock()
	s.grpc = server
	s.mu.Unlock()
	s.served.Go(func() { _ = server.Serve(listener) }) // returns after Stop
	return nil
}

func (s *Server) listen() (net.Listener, error) {
	if !s.inMemory {
		return net.Listen("unix", s.socket)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory = bufconn.Listen(1 << 20)
	return s.memory, nil
}

// id returns the next object's ID; the caller holds mu.
func (s *Server) id(kind string) string {
	s.nextID++
	return fmt.Sprintf("%s-%d", kind, s.nextID)
}

// Version returns the fake's name and version.
func (s *Server) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "fake", RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1"}, nil
}

// Status reports runtime and network as ready.
func (s *Server) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true},
		{Type: runtimeapi.NetworkReady, Status: true},
	}}}, nil
}

// RuntimeConfig returns the cgroup driver.
func (s *Server) RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}}, nil
}

// UpdateRuntimeConfig accepts everything.
func (s *Server) UpdateRuntimeConfig(context.Context, *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
}
