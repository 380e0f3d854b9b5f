// Package agent connects the parts of the node agent. It is wiring only.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/checkpoint"
	"swiftlet/internal/config"
	"swiftlet/internal/contain"
	"swiftlet/internal/host"
	"swiftlet/internal/metrics"
	"swiftlet/internal/page"
	"swiftlet/internal/preflight"
	"swiftlet/internal/surroundings"
	"swiftlet/internal/tracing"
	"swiftlet/internal/why"
)

// Options are the settings that are not part of the configuration.
type Options struct {
	Log *slog.Logger
	// SetVerbosity changes the level of Log; may be nil.
	SetVerbosity func(level string) error
	// Version is the version of Swiftlet.
	Version string
	// When Drain is closed, Run stops every pod within its grace period, removes it, and
	// returns. When Run's context is done, it returns and leaves pods running.
	Drain <-chan struct{}
	// Show is called with each pod after a change, with a note if it is not up, and Forget after its
	// removal; both may be nil.
	Show   func(p *v1.Pod, note string)
	Forget func(types.UID)
	// Access lets people in who have a link to the page (--enable-ui); may be nil.
	Access *page.Access
	// OnlyNode is set for a node without others. Pods wait for devices that no plugin offers, as no
	// scheduler placed them here, and the loopback address is the node's if it has no network.
	OnlyNode bool
}

// base has what all parts of the agent are built from.
type base struct {
	cfg     *config.Config
	opts    Options
	around  surroundings.Surroundings
	log     *slog.Logger
	clock   clock.WithTickerAndDelayedExecution
	started time.Time

	nodeName string // the host name or its override
	metrics  *metrics.Metrics
	tracing  *tracing.Provider // nil unless tracing is configured
	panics   contain.Reporter
	why      *why.Tracker
	hub      hub
	parts    []part
}

// part is something that runs until its context is done.
type part struct {
	name string
	run  func(context.Context) error
}

// add adds a part. Run starts all parts when the last one is built.
func (b *base) add(name string, run func(context.Context) error) {
	b.parts = append(b.parts, part{name, run})
}

// addUnless adds a part unless err, the error of its constructor, is set. It returns err.
func (b *base) addUnless(err error, name string, run func(context.Context) error) error {
	if err == nil {
		b.add(name, run)
	}
	return err
}

// Run runs the agent until ctx is done, a part fails, or all pods are drained.
func Run(ctx context.Context, cfg *config.Config, opts Options) error {
	if opts.Log == nil {
		return errors.New("run agent: missing Log")
	}
	lock, err := host.Lock(ctx, cfg.Flags.LockFile, cfg.Flags.ExitOnLockContention, opts.Log)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := preflight.Run(cfg, preflight.Options{}); err != nil {
		return fmt.Errorf("start kubelet:\n%w", err)
	}
	if err := host.Configure(&cfg.Kubelet, cfg.Flags.Kubeconfig == "", opts.Log); err != nil {
		return err
	}
	return RunIn(ctx, cfg, opts, surroundings.Machine())
}

// RunIn is Run in the given surroundings. It neither checks nor configures this machine.
func RunIn(ctx context.Context, cfg *config.Config, opts Options, around surroundings.Surroundings) error {
	b, err := newBase(ctx, cfg, opts, around)
	if err != nil {
		return err
	}
	api, err := newAPI(b)
	if err != nil {
		return fmt.Errorf("set up API clients: %w", err)
	}
	plugins, err := newCredentialPlugins(b, api)
	if err != nil {
		return fmt.Errorf("set up credential plugins: %w", err)
	}
	runtime, err := dialRuntime(ctx, b)
	if err != nil {
		return fmt.Errorf("connect to container runtime: %w", err)
	}
	defer runtime.cri.Close()
	machine, err := newMachine(b, api, runtime)
	if err != nil {
		return fmt.Errorf("set up machine: %w", err)
	}
	pods, err := newPods(b, api, runtime, machine, plugins)
	if err != nil {
		return fmt.Errorf("set up pods: %w", err)
	}
	if err := newNode(b, api, runtime, machine, pods); err != nil {
		return fmt.Errorf("set up node: %w", err)
	}
	if err := newServers(ctx, b, api, runtime, machine, pods); err != nil {
		return fmt.Errorf("set up servers: %w", err)
	}
	return b.run(ctx, pods.workers.Drain)
}

func newBase(ctx context.Context, cfg *config.Config, opts Options, around surroundings.Surroundings) (_ *base, err error) {
	b := &base{cfg: cfg, opts: opts, around: around, log: opts.Log, clock: clock.RealClock{}, why: why.New()}
	b.started = b.clock.Now()
	if b.metrics, err = metrics.New(b.clock, b.log); err != nil {
		return nil, err
	}
	b.panics = contain.Reporter{Log: b.log, Count: b.metrics.Panics()}
	if b.nodeName, err = host.Hostname(cfg.Flags.HostnameOverride); err != nil {
		return nil, err
	}
	checkpoint.Clean(cfg.Flags.RootDir, b.log)
	if cfg.Kubelet.Tracing != nil {
		if b.tracing, err = tracing.New(ctx, cfg.Kubelet.Tracing, b.nodeName, b.log); err != nil {
			return nil, fmt.Errorf("set up tracing: %w", err)
		}
		b.add("tracing", b.tracing.Run)
	}
	return b, nil
}

// run runs all parts. If one fails, it stops the others and returns the error: the service
// manager restarts the agent.
func (b *base) run(ctx context.Context, drain func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range b.parts {
		group.Go(func() error {
			if err := p.run(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			return nil
		})
	}
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-b.opts.Drain:
		}
		b.log.Info("stopping all pods")
		err := drain(ctx)
		stop()
		return err
	})
	b.log.Info("Started kubelet", "node", b.nodeName)
	if err := host.NotifyReady(); err != nil {
		b.log.Warn("failed to notify service manager", "state", "ready", "err", err)
	}
	return group.Wait()
}
