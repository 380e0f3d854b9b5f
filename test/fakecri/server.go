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

// Option changes how a fake runtime behaves from its start.
type Option func(*Server)

// WithoutEvents makes a runtime that does not implement the event stream.
func WithoutEvents() Option { return func(s *Server) { s.noEvents = true } }

// WithNow sets the clock that dates objects and events.
func WithNow(now func() time.Time) Option { return func(s *Server) { s.now = now } }

// InMemory makes a runtime that is reached by Dial alone: without the kernel in between, a
// test may run it on synctest's time.
func InMemory() Option { return func(s *Server) { s.inMemory = true } }

// WithImages puts images on the node, each of 1 MiB.
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
	now      func() time.Time

	mu         sync.Mutex
	memory     *bufconn.Listener // where inMemory
	between    Between
	grpc       *grpc.Server
	served     sync.WaitGroup
	calls      []Call
	faults     map[string]*Fault
	nextID     int
	sandboxes  map[string]*runtimeapi.PodSandboxStatus
	containers map[string]*container
	images     map[string]*runtimeapi.Image
	remote     map[string]uint64
	onStart    func(*runtimeapi.ContainerStatus) (exitCode int32, exits bool)
	onExec     func(*runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error)
}

// Start starts a fake runtime that lives as long as the test.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	// Not t.TempDir: a socket's path may have 107 characters only.
	dir, err := os.MkdirTemp("", "fakecri")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		socket:     filepath.Join(dir, "cri.sock"),
		now:        time.Now,
		faults:     map[string]*Fault{},
		sandboxes:  map[string]*runtimeapi.PodSandboxStatus{},
		containers: map[string]*container{},
		images:     map[string]*runtimeapi.Image{},
		remote:     map[string]uint64{},
		Events:     newEvents(),
	}
	for _, option := range options {
		option(s)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		_ = os.RemoveAll(dir)
	})
	return s
}

// Endpoint is where the runtime listens.
func (s *Server) Endpoint() string { return "unix://" + s.socket }

// Dial connects to a runtime that is InMemory.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	s.mu.Lock()
	listener := s.memory
	s.mu.Unlock()
	return listener.DialContext(ctx)
}

// Stop takes the runtime away, as a crash would; what it ran stays. Calls that hang are
// ended.
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

// Restart brings a stopped runtime back.
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
	s.served.Go(func() { _ = server.Serve(listener) }) // ends with Stop
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

// id makes the next object's name; the caller holds mu.
func (s *Server) id(kind string) string {
	s.nextID++
	return fmt.Sprintf("%s-%d", kind, s.nextID)
}

// Version names the fake.
func (s *Server) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "fake", RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1"}, nil
}

// Status says that all is well.
func (s *Server) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true},
		{Type: runtimeapi.NetworkReady, Status: true},
	}}}, nil
}

// RuntimeConfig names the cgroup driver.
func (s *Server) RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}}, nil
}

// UpdateRuntimeConfig accepts everything.
func (s *Server) UpdateRuntimeConfig(context.Context, *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
}
