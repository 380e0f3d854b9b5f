package standalone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/require"
)

// Config holds the user's settings.
type Config struct {
	Paths     Paths
	Manifests string   // the directory of Pods, ConfigMaps and Secrets
	ConfigDir string   // the directory of drop-ins for the agent's configuration; it need not exist
	ImageDirs []string // directories of image archives to import
	// Registries says from where other images are pulled.
	Registries Registries
	PodCIDR    netip.Prefix
	NodeName   string
	// Port is the agent's HTTPS port and HealthzPort its health port, both on loopback. With
	// HealthzPort 0 there is no health port.
	Port, HealthzPort int
	SystemdCgroups    bool
	// BundleHashes are those of the programs that this executable was built with. AnyBundle runs
	// programs that have other hashes.
	BundleHashes BundleHashes
	AnyBundle    bool
	// Colours shows the status of pods in colours.
	Colours bool
	// Keep leaves pods and runtime running on exit, for the next instance to adopt.
	Keep bool
	// Page serves the page for people on Port.
	Page bool
	// API is nil without an API server.
	API *APIConfig

	// With an API, these depend on the machine.
	proxyServices bool   // traffic of Services is led to pods
	dnsAddress    string // of the DNS server for pods; "" if there is none
}

// Runtime is the part of CRI that start and teardown need.
type Runtime interface {
	Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error)
	ListImages(ctx context.Context) ([]*runtimeapi.Image, error)
	ListPodSandboxes(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error)
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	StopPodSandbox(ctx context.Context, id string) error
	RemovePodSandbox(ctx context.Context, id string) error
}

// AgentRun is the input of the agent. Args are its flags, as for `swiftlet kubelet`. When Drain
// is closed, the agent stops every pod with its hooks and grace period, and returns; the
// supervisor stops pods that are left. When its context is done, the agent returns at once and
// leaves the pods running. It reports changed pods to Display.
type AgentRun struct {
	Args    []string
	Drain   <-chan struct{}
	Display *Display
}

// Deps is what the supervisor works with.
type Deps struct {
	Log     *slog.Logger
	Clock   clock.Clock
	Runtime Runtime // is connected to Config.Paths.Socket()
	Agent   func(ctx context.Context, run AgentRun) error
	// Out receives progress messages and the pods. If it is a terminal, Rows returns its
	// current height, and the pod table is redrawn in place; else Rows is nil.
	Out  io.Writer
	Rows func() int
	// Link returns the path of a new link to the page; nil prints none.
	Link func() string
	// ForceStop is closed at the second signal: grace periods end.
	ForceStop <-chan struct{}
}

// Supervisor is one `swiftlet up`.
type Supervisor struct {
	cfg  Config
	deps Deps
}

// New checks the configuration. It starts and changes nothing.
func New(cfg Config, deps Deps) (*Supervisor, error) {
	if err := require.Set("set up standalone", map[string]any{
		"Log": deps.Log, "Clock": deps.Clock, "Runtime": deps.Runtime, "Agent": deps.Agent,
		"Out": deps.Out,
	}); err != nil {
		return nil, err
	}
	switch {
	case cfg.Paths == Paths{}:
		return nil, errors.New("set up standalone: no paths")
	case !filepath.IsAbs(cfg.Manifests):
		return nil, fmt.Errorf("set up standalone: the manifests directory %q is not an absolute path", cfg.Manifests)
	case !cfg.PodCIDR.IsValid() || !cfg.PodCIDR.Addr().Is4() || cfg.PodCIDR.Bits() > 28:
		return nil, fmt.Errorf("set up standalone: the pod network %s must be IPv4 and hold at least 16 addresses", cfg.PodCIDR)
	case cfg.NodeName == "":
		return nil, errors.New("set up standalone: no node name")
	case cfg.API != nil && (cfg.API.Port < 1 || cfg.API.Port > 65535):
		return nil, fmt.Errorf("set up standalone: %d is not a port for the API server", cfg.API.Port)
	}
	return &Supervisor{cfg: cfg, deps: deps}, nil
}

// Run starts the runtime and the agent and blocks until ctx is done or the agent fails. Then it
// removes everything again, or leaves pods and runtime running if Keep is set.
func (s *Supervisor) Run(ctx context.Context) error {
	lock, err := s.acquireLock()
	if err != nil {
		return err
	}
	defer s.releaseLock(lock)
	if err := preflight(s.cfg, s.deps.Clock); err != nil {
		return err
	}
	filter, err := filterBackend(exec.LookPath)
	if err != nil {
		return err
	}
	sockets := s.listenDNS()
	defer sockets.close()
	configChanged, err := s.writeConfigs(ctx, filter)
	if err != nil {
		return err
	}
	if err := s.decideProxy(filter); err != nil {
		return err
	}
	runtime := newContainerd(s.cfg.Paths, s.deps.Log, s.deps.Clock)
	if err := runtime.adoptOrStart(ctx, configChanged); err != nil {
		if len(s.shims()) > 0 {
			return err // keep the pods of an earlier instance running
		}
		return errors.Join(err, s.teardown(nil))
	}
	watchCtx, cancelWatch := context.WithCancel(context.Background())
	var watchers sync.WaitGroup
	watchers.Go(func() { _ = runtime.run(watchCtx) }) // returns only when its context is done
	watchers.Go(func() { s.keepLocalnetBlocked(watchCtx, filter) })
	watchers.Go(func() { limitLog(watchCtx, s.cfg.Paths.containerdLog(), maxLogSize, s.deps.Clock, s.deps.Log) })
	stopWatching := func() *containerd { cancelWatch(); watchers.Wait(); return runtime }
	display := newDisplay(s.deps.Out, s.deps.Rows, s.deps.Clock, s.cfg)
	api, err := s.startAPI(display)
	if err == nil {
		dns := s.startDNS(sockets)
		err = errors.Join(s.serve(ctx, api, display), api.stop(), dns.stop())
	}
	if s.cfg.Keep {
		stopWatching().release()
		s.progress("pods and runtime keep running; the next `swiftlet up` adopts them")
		return err
	}
	return errors.Join(err, s.teardown(stopWatching))
}

// StartedLine is written to Deps.Out before the first pods start.
const StartedLine = "swiftlet: started"

// serve waits for the runtime and the API server, imports images, and runs the agent until ctx is done.
func (s *Supervisor) serve(ctx context.Context, api *apiServer, display *Display) error {
	s.progress("starting the runtime")
	began := s.deps.Clock.Now()
	if err := s.awaitRuntime(ctx); err != nil {
		return withoutCancel(ctx, err)
	}
	s.progress("the runtime and its network are ready after %s", s.since(began))
	if err := s.importImages(ctx); err != nil {
		return withoutCancel(ctx, err)
	}
	if err := s.awaitAPI(ctx, api); err != nil {
		return withoutCancel(ctx, err)
	}
	s.showLink()
	fmt.Fprintln(s.deps.Out, StartedLine)
	displayCtx, stopDisplay := context.WithCancel(context.Background())
	displayStopped := make(chan struct{})
	go func() {
		defer close(displayStopped)
		display.run(displayCtx)
	}()
	err := s.runAgent(ctx, display, api)
	stopDisplay()
	<-displayStopped
	return err
}

// runAgent runs the agent until ctx is done. The API server stops before the pods, so that they are stored as
// what they were: the next instance runs them again, as after a power failure.
func (s *Supervisor) runAgent(ctx context.Context, display *Display, api *apiServer) error {
	agentCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	drain := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- s.deps.Agent(agentCtx, AgentRun{Args: agentArgs(s.cfg), Drain: drain, Display: display})
	}()
	select {
	case err := <-ended:
		if err == nil && ctx.Err() == nil {
			err = errors.New("agent returned before it was stopped")
		}
		return wrapAgent(err)
	case <-ctx.Done():
	}
	if s.cfg.Keep {
		cancel()
		return wrapAgent(withoutCancel(agentCtx, <-ended))
	}
	stopErr := api.stop()
	close(drain)
	select {
	case err := <-ended:
		return errors.Join(stopErr, wrapAgent(err))
	case <-s.deps.ForceStop:
		cancel()
		return errors.Join(stopErr, wrapAgent(withoutCancel(agentCtx, <-ended)))
	}
}

func wrapAgent(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("run agent: %w", err)
}

// withoutCancel returns nil if ctx is done: then the failure is the result of the stop.
func withoutCancel(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// awaitRuntime returns once the runtime and its network are ready.
func (s *Supervisor) awaitRuntime(ctx context.Context) error {
	return s.poll(ctx, time.Minute, "wait for containerd (log: "+s.cfg.Paths.containerdLog()+")", func(ctx context.Context) error {
		answer, err := s.deps.Runtime.Status(ctx, false)
		if err != nil {
			return err
		}
		for _, c := range answer.Status.Conditions {
			if !c.Status && (c.Type == runtimeapi.RuntimeReady || c.Type == runtimeapi.NetworkReady) {
				return fmt.Errorf("%s is false: %s", c.Type, c.Message)
			}
		}
		return nil
	})
}

// poll retries until try succeeds. It is for waits of milliseconds that have no notification.
func (s *Supervisor) poll(ctx context.Context, limit time.Duration, doing string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", doing, err)
		case <-s.deps.Clock.After(25 * time.Millisecond):
		}
	}
}

// since returns the time since then, as it is shown.
func (s *Supervisor) since(then time.Time) time.Duration {
	return s.deps.Clock.Since(then).Round(100 * time.Millisecond)
}

func (s *Supervisor) progress(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	fmt.Fprintln(s.deps.Out, "swiftlet: "+line)
}
