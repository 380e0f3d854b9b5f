package pluginreg

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// patience is how long a test waits for what must happen; it says nothing about speed.
const patience = 30 * time.Second

// fakePlugin serves the registration protocol on a real socket.
type fakePlugin struct {
	registration.UnimplementedRegistrationServer
	info       *registration.PluginInfo
	statuses   chan *registration.RegistrationStatus
	failNotify bool // NotifyRegistrationStatus fails
	server     *grpc.Server
	listener   *net.UnixListener
}

func (f *fakePlugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return f.info, nil
}

func (f *fakePlugin) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	f.statuses <- s
	if f.failNotify {
		return nil, errors.New("notification failed")
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// serve starts the plugin with a socket at path, which is removed when the server stops.
func serve(t *testing.T, path string, f *fakePlugin) *fakePlugin {
	t.Helper()
	if f.info.Type == "" {
		f.info.Type = "CSIPlugin"
	}
	f.statuses = make(chan *registration.RegistrationStatus, 100)
	f.server = grpc.NewServer()
	registration.RegisterRegistrationServer(f.server, f)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	f.listener = listener
	go f.server.Serve(listener)
	t.Cleanup(f.server.Stop)
	return f
}

func (f *fakePlugin) status(t *testing.T) *registration.RegistrationStatus {
	t.Helper()
	return receive(t, f.statuses, "registration status")
}

func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// fakeHandler records its calls in order.
type fakeHandler struct {
	calls    chan string
	validate func(Plugin) error
	register func(context.Context, Plugin) error
}

func newHandler() *fakeHandler { return &fakeHandler{calls: make(chan string, 100)} }

func (h *fakeHandler) Validate(_ context.Context, p Plugin) error {
	if h.validate != nil {
		return h.validate(p)
	}
	return nil
}

func (h *fakeHandler) Register(ctx context.Context, p Plugin) error {
	h.calls <- "register " + p.Name + " " + filepath.Base(p.Endpoint)
	if h.register != nil {
		return h.register(ctx, p)
	}
	return nil
}

func (h *fakeHandler) Deregister(p Plugin) { h.calls <- "deregister " + p.Name }

func (h *fakeHandler) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := receive(t, h.calls, w); got != w {
			t.Fatalf("handler call %q, want %q", got, w)
		}
	}
}

// newDir is a path short enough for a socket.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "reg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "r")
}

// start runs a registry over dir until stop is called.
func start(t *testing.T, dir string, h Handler, c clock.WithTicker) (stop func()) {
	t.Helper()
	_, stop = startRegistry(t, dir, h, c)
	return stop
}

func startRegistry(t *testing.T, dir string, h Handler, c clock.WithTicker) (r *Registry, stop func()) {
	t.Helper()
	r, err := New(Config{Dir: dir}, Deps{
		Handlers: map[string]Handler{"CSIPlugin": h}, Clock: c, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stopped := false
	stop = func() {
		cancel()
		if !stopped {
			stopped = true
			receive(t, ended, "end of Run")
		}
	}
	t.Cleanup(stop)
	return r, stop
}

// advance steps the clock once something waits for it.
func advance(t *testing.T, c *clocktesting.FakeClock, by time.Duration) {
	t.Helper()
	for end := time.Now().Add(patience); !c.HasWaiters(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing waits for the clock")
		}
	}
	c.Step(by)
}
