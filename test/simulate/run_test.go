package simulate

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc/test/bufconn"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/agent"
	"swiftlet/internal/cgroup"
	"swiftlet/internal/config"
	"swiftlet/internal/oom"
	"swiftlet/internal/surroundings"
	"swiftlet/test/fakekernel"
)

// run is one run of the agent, from its start until it is killed.
type run struct {
	*node
	ctx    context.Context
	cancel context.CancelFunc

	ended chan struct{} // closed when the agent has ended

	lock   sync.Mutex
	killed bool
	conns  []net.Conn
}

var errKilled = errors.New("agent was killed")

func newRun(n *node) *run {
	r := &run{node: n, ended: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// serve runs the agent with its production wiring.
func (r *run) serve() error {
	cfg, err := config.Load([]string{"--config", filepath.Join(r.base, "config.yaml"), "--root-dir", r.root(), "--kubeconfig", filepath.Join(r.base, "kubeconfig"),
		"--hostname-override", nodeName, "--cert-dir", r.certificates()})
	if err != nil {
		return err
	}
	kernel := r.kernel.View(r.kernelCall)
	return agent.RunIn(r.ctx, cfg, agent.Options{Log: r.log(), Version: "simulated"}, surroundings.Surroundings{
		Runtime: r.dial,
		API:     func(http.RoundTripper) http.RoundTripper { return r },
		Cgroups: func() (cgroup.Hierarchy, error) { return fakekernel.Hierarchy(r.inLive("cgroup")) },
		PodCgroups: func(bool, *cgroup.Tree, func() []*v1.Pod) cgroup.PodCgroups {
			return kernel.Cgroups()
		},
		Mounter:    kernel,
		KernelLog:  func(oom.LogRules, *slog.Logger) (io.ReadCloser, error) { return nil, nil },
		NewWatcher: func() (*fsnotify.Watcher, error) { return nil, errors.New("no inotify") },
		Listen: func(context.Context, string, string) (net.Listener, error) {
			return bufconn.Listen(1), nil
		},
		Random: func() float64 { return 0.5 },
	})
}

// kill is kill -9: from now on, the run changes neither the disk nor anything else.
func (r *run) kill(why string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.killed || r.ctx.Err() != nil {
		return
	}
	r.killed = true
	r.add("KILL agent %s", why)
	if err := os.Rename(r.live(), r.saved()); err != nil {
		r.world.violate("save disk: %v", err)
	}
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.cancel()
}

func (r *run) isKilled() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.killed
}

func (r *run) diskSaved() bool { return r.isKilled() }

// restoreDisk brings back the disk of a killed run. It reports whether the run was killed.
func (r *run) restoreDisk() bool {
	r.node.mu.Lock()
	defer r.node.mu.Unlock()
	r.lock.Lock()
	defer r.lock.Unlock()
	if !r.killed {
		return false
	}
	if err := errors.Join(os.RemoveAll(r.live()), os.Rename(r.saved(), r.live())); err != nil {
		r.world.violate("restore disk: %v", err)
	}
	r.killed = false
	return true
}

// dial connects to the runtime.
func (r *run) dial(ctx context.Context) (net.Conn, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.killed {
		return nil, errKilled
	}
	c, err := r.runtime.Dial(ctx)
	if err == nil {
		r.conns = append(r.conns, c)
	}
	return c, err
}

// RoundTrip sends a request to the API server.
func (r *run) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.isKilled() {
		return nil, errKilled
	}
	return r.api.RoundTrip(request.WithContext(context.WithValue(request.Context(), runKey{}, r)))
}

type runKey struct{}

// kernelCall does something in the kernel, or fails by chance.
func (r *run) kernelCall(call, subject string, act func() error) error {
	if r.isKilled() {
		return errKilled
	}
	name := call + " " + r.shorten(subject)
	if r.crash.reached("kernel " + name) {
		if r.crash.executed {
			_ = act()
		}
		r.kill("at kernel " + name)
		return errKilled
	}
	if r.fails(r.profile.kernelFaults, name) {
		r.add("kernel %s: FAULT", name)
		return errors.New("simulated failure of " + call)
	}
	err := act()
	r.add("kernel %s: %v", name, err)
	return err
}

// fails decides whether a call fails.
func (n *node) fails(rate float64, name string) bool {
	n.mu.Lock()
	on := n.faults
	n.mu.Unlock()
	if !on || !often(n.roll("fail "+name), rate) {
		return false
	}
	n.countFault()
	return true
}

// shorten removes the node's directory from a path.
func (n *node) shorten(path string) string {
	if short, err := filepath.Rel(n.root(), path); err == nil && filepath.IsAbs(path) {
		return short
	}
	return path
}

func (r *run) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(logWriter{r.node}, &slog.HandlerOptions{
		Level: logLevel(),
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// logWriter adds the agent's log to the trace.
type logWriter struct{ n *node }

func (w logWriter) Write(line []byte) (int, error) {
	w.n.add("log %s", line[:max(0, len(line)-1)])
	return len(line), nil
}
