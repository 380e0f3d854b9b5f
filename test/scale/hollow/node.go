package hollow

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/agent"
	"swiftlet/internal/cgroup"
	"swiftlet/internal/config"
	"swiftlet/internal/host"
	"swiftlet/internal/oom"
	"swiftlet/internal/surroundings"
	"swiftlet/test/fakecri"
	"swiftlet/test/fakekernel"
)

// Config is the configuration of a node.
type Config struct {
	Name string
	// Dir has the node's files, and the kubeconfig and configuration that Files names.
	Dir string
	// Page serves the page for people.
	Page bool
	// DropEvents discards events about pods and nodes instead of sending them, as kubemark does.
	DropEvents bool
	// Memory is the memory of the process; nil if several nodes share the process.
	Memory host.Memory
	Log    *slog.Logger
}

// Node is a node: a simulated machine and runtime. They outlive the runs of its agent.
type Node struct {
	cfg     Config
	files   Files
	runtime *fakecri.Server
	kernel  *fakekernel.Kernel
}

// New starts the node's runtime, but not its agent.
func New(cfg Config) (*Node, error) {
	n := Attach(cfg)
	var err error
	if n.runtime, err = n.files.StartRuntime(); err != nil {
		return nil, fmt.Errorf("start runtime of node %s: %w", cfg.Name, err)
	}
	n.runtime.SetInterceptor(delay)
	return n, nil
}

// Attach returns a node whose runtime another process has started.
func Attach(cfg Config) *Node {
	return &Node{cfg: cfg, files: Files(cfg.Dir), kernel: fakekernel.New()}
}

// Close stops the runtime.
func (n *Node) Close() { n.runtime.Stop() }

// Run runs the agent until ctx is done. It may be called again after it has returned: the containers have
// kept running meanwhile.
func (n *Node) Run(ctx context.Context) error {
	cfg, err := config.Load([]string{
		"--config", n.files.Configuration(), "--kubeconfig", n.files.Kubeconfig(), "--root-dir", n.files.Root(),
		"--cert-dir", n.files.certificates(), "--hostname-override", n.cfg.Name, fmt.Sprintf("--enable-ui=%t", n.cfg.Page),
	})
	if err != nil {
		return fmt.Errorf("configure node %s: %w", n.cfg.Name, err)
	}
	kernel := n.kernel.View(nil)
	around := surroundings.Surroundings{
		Cgroups: func() (cgroup.Hierarchy, error) { return fakekernel.Hierarchy(n.files.cgroups()) },
		PodCgroups: func(bool, *cgroup.Tree, func() []*v1.Pod) cgroup.PodCgroups {
			return kernel.Cgroups()
		},
		Mounter:   kernel,
		KernelLog: func(oom.LogRules, *slog.Logger) (io.ReadCloser, error) { return nil, nil },
		Random:    rand.Float64,
		Memory:    n.cfg.Memory,
	}
	if n.cfg.DropEvents {
		around.API = func(next http.RoundTripper) http.RoundTripper { return withoutEvents{next} }
	}
	return agent.RunIn(ctx, cfg, agent.Options{Log: n.cfg.Log, Version: "hollow"}, around)
}

// Files names the files of a node, by its directory. Sockets are among them, so the directory's path must
// be short.
type Files string

// StartRuntime starts the runtime of a node, without delays.
func (f Files) StartRuntime() (*fakecri.Server, error) {
	return fakecri.New(f.socket(), fakecri.WithoutCalls(), fakecri.WithImages(Image))
}

// Kubeconfig is the identity of the node.
func (f Files) Kubeconfig() string { return f.in("kubeconfig") }

// Configuration is the kubelet's configuration file.
func (f Files) Configuration() string { return f.in("config.yaml") }

// Root is the kubelet's root directory.
func (f Files) Root() string { return f.in("kubelet") }

func (f Files) manifests() string     { return f.in("manifests") }
func (f Files) podLogs() string       { return f.in("logs") }
func (f Files) certificates() string  { return f.in("pki") }
func (f Files) cgroups() string       { return f.in("cgroup") }
func (f Files) socket() string        { return f.in("cri.sock") }
func (f Files) in(name string) string { return filepath.Join(string(f), name) }
