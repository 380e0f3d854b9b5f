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

// Config is what the user chose.
type Config struct {
	Places    Places
	Manifests string   // the directory of Pods, ConfigMaps and Secrets
	ImageDirs []string // directories of image archives to import
	PodCIDR   netip.Prefix
	NodeName  string
	// Port is the agent's HTTPS port and HealthzPort its health port, both on loopback;
	// no health port where it is 0.
	Port, HealthzPort int
	SystemdCgroups    bool
	// Keep leaves pods and runtime running when swiftlet ends, for the next one to take over.
	Keep bool
}

// Runtime is the part of CRI that bringing up and taking down needs.
type Runtime interface {
	Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error)
	ListImages(ctx context.Context) ([]*runtimeapi.Image, error)
	ListPodSandboxes(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error)
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	StopPodSandbox(ctx context.Context, id string) error
	RemovePodSandbox(ctx context.Context, id string) error
}

// AgentRun is what the agent gets. Args are its command line, as for `swiftlet kubelet`.
// When Drain is closed it stops every pod, each with its hooks and grace period, and
// returns; what it leaves is stopped after it. When its context ends it returns at once
// and leaves the pods running. It shows pods on Board as their status changes.
type AgentRun struct {
	Args  []string
	Drain <-chan struct{}
	Board *Board
}

// Deps is what the supervisor works with.
type Deps struct {
	Log     *slog.Logger
	Clock   clock.Clock
	Runtime Runtime // speaks to Config.Places.Socket()
	Agent   func(ctx context.Context, run AgentRun) error
	// Out gets progress and the pods. Where it is a terminal, Rows tells how many lines it
	// has now, and the pods are redrawn in place; else Rows is nil.
	Out  io.Writer
	Rows func() int
	// Hurry is closed when the user asks a second time to stop: no more grace.
	Hurry <-chan struct{}
}

// Supervisor is one `swiftlet up`.
type Supervisor struct {
	cfg  Config
	deps Deps
}

// New checks the configuration; nothing is started or touched.
func New(cfg Config, deps Deps) (*Supervisor, error) {
	if err := require.Set("set up standalone", map[string]any{
		"Log": deps.Log, "Clock": deps.Clock, "Runtime": deps.Runtime, "Agent": deps.Agent,
		"Out": deps.Out,
	}); err != nil {
		return nil, err
	}
	switch {
	case cfg.Places == Places{}:
		return nil, errors.New("set up standalone: no places")
	case !filepath.IsAbs(cfg.Manifests):
		return nil, fmt.Errorf("set up standalone: the manifests directory %q is not an absolute path", cfg.Manifests)
	case !cfg.PodCIDR.IsValid() || !cfg.PodCIDR.Addr().Is4() || cfg.PodCIDR.Bits() > 28:
		return nil, fmt.Errorf("set up standalone: the pod network %s must be IPv4 and hold at least 16 addresses", cfg.PodCIDR)
	case cfg.NodeName == "":
		return nil, errors.New("set up standalone: no node name")
	}
	return &Supervisor{cfg: cfg, deps: deps}, nil
}

// Run brings everything up and blocks until ctx is done or the agent fails, then takes
// everything down again, or leaves it running where Keep says so.
func (s *Supervisor) Run(ctx context.Context) error {
	lock, err := s.claim()
	if err != nil {
		return err
	}
	defer s.release(lock)
	if err := preflight(s.cfg); err != nil {
		return err
	}
	filter, err := filterBackend(exec.LookPath)
	if err != nil {
		return err
	}
	configChanged, err := s.prepare(filter)
	if err != nil {
		return err
	}
	runtime := &containerd{places: s.cfg.Places, log: s.deps.Log, clock: s.deps.Clock}
	if err := runtime.begin(ctx, configChanged); err != nil {
		if len(s.shims()) > 0 {
			return err // pods of an earlier instance run: they are not to pay for it
		}
		return errors.Join(err, s.tearDown(nil))
	}
	watching, unwatch := context.WithCancel(context.Background())
	var watched sync.WaitGroup
	watched.Go(func() { _ = runtime.run(watching) }) // ends only with its context
	watched.Go(func() { s.keepLocalnetBlocked(watching, filter) })
	settle := func() *process { unwatch(); watched.Wait(); return runtime.current }
	err = s.serve(ctx)
	if s.cfg.Keep {
		settle().close()
		s.say("pods and runtime go on; `swiftlet up` takes them over")
		return err
	}
	return errors.Join(err, s.tearDown(settle))
}

// serve makes the runtime ready and runs the agent until the user has had enough.
func (s *Supervisor) serve(ctx context.Context) error {
	s.say("starting the runtime")
	if err := s.awaitRuntime(ctx); err != nil {
		return withoutCancel(ctx, err)
	}
	if err := s.importImages(ctx); err != nil {
		return withoutCancel(ctx, err)
	}
	board := newBoard(s.deps.Out, s.deps.Rows, s.deps.Clock, s.cfg)
	showing, hide := context.WithCancel(context.Background())
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		board.run(showing)
	}()
	err := s.runAgent(ctx, board)
	hide()
	<-shown
	return err
}

func (s *Supervisor) runAgent(ctx context.Context, board *Board) error {
	agentCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	drain := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- s.deps.Agent(agentCtx, AgentRun{Args: agentArgs(s.cfg), Drain: drain, Board: board})
	}()
	select {
	case err := <-ended:
		if err == nil && ctx.Err() == nil {
			err = errors.New("ended without being stopped")
		}
		return wrapAgent(err)
	case <-ctx.Done():
	}
	if s.cfg.Keep {
		cancel()
		return wrapAgent(withoutCancel(agentCtx, <-ended))
	}
	close(drain)
	select {
	case err := <-ended:
		return wrapAgent(err)
	case <-s.deps.Hurry:
		cancel()
		return wrapAgent(withoutCancel(agentCtx, <-ended))
	}
}

func wrapAgent(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("run the agent: %w", err)
}

// withoutCancel makes an end that was asked for no error.
func withoutCancel(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// awaitRuntime returns once pods can be started: the runtime and its network are ready.
func (s *Supervisor) awaitRuntime(ctx context.Context) error {
	return s.poll(ctx, time.Minute, "wait for the runtime (its log is "+s.cfg.Places.containerdLog()+")", func(ctx context.Context) error {
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

// poll asks again and again, for things that take milliseconds and announce nothing.
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

func (s *Supervisor) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	fmt.Fprintln(s.deps.Out, "swiftlet: "+line)
}
