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

	"swiftlet/internal/config"
	"swiftlet/internal/host"
	"swiftlet/internal/metrics"
	"swiftlet/internal/tracing"
)

// Options is what the caller adds to the configuration.
type Options struct {
	Log *slog.Logger
	// SetVerbosity changes how much Log lets through; may be nil.
	SetVerbosity func(level string) error
	// Drain, when closed, has every pod stopped with its grace period and removed; then Run
	// returns. The end of Run's context leaves pods running.
	Drain <-chan struct{}
	// Show is called with each pod after a change of its status, and Forget when it is gone;
	// both may be nil.
	Show   func(*v1.Pod)
	Forget func(types.UID)
}

// base is what every part of the agent is built from.
type base struct {
	cfg   *config.Config
	opts  Options
	log   *slog.Logger
	clock clock.WithTickerAndDelayedExecution
	began time.Time

	nodeName string // which is the host's name
	metrics  *metrics.Metrics
	tracing  *tracing.Provider // nil unless the configuration asks for traces
	hub      hub
	parts    []part
}

// part is something that runs until its context ends.
type part struct {
	name string
	run  func(context.Context) error
}

// add has run called, with all others, once everything is built.
func (b *base) add(name string, run func(context.Context) error) {
	b.parts = append(b.parts, part{name, run})
}

// addUnless is add for a part that was just made, unless that failed.
func (b *base) addUnless(err error, name string, run func(context.Context) error) error {
	if err == nil {
		b.add(name, run)
	}
	return err
}

// Run brings the agent up and blocks until ctx ends, a part fails, or all pods are drained.
func Run(ctx context.Context, cfg *config.Config, opts Options) error {
	if opts.Log == nil {
		return errors.New("run agent: a log is needed")
	}
	if path := cfg.Flags.LockFile; path != "" {
		opts.Log.Info("waiting for lock file", "path", path)
		lock, err := host.Lock(ctx, path, cfg.Flags.ExitOnLockContention)
		if err != nil {
			return err
		}
		defer lock.Close()
	}
	b, err := newBase(ctx, cfg, opts)
	if err != nil {
		return err
	}
	if err := host.Configure(&cfg.Kubelet, cfg.Flags.Kubeconfig == "", b.log); err != nil {
		return err
	}
	// An unusable kubeconfig is reported at once, not when the runtime is up.
	api, err := newAPI(b)
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	plugins, err := newCredentialPlugins(b, api)
	if err != nil {
		return fmt.Errorf("find credential plugins: %w", err)
	}
	runtime, err := dialRuntime(ctx, b)
	if err != nil {
		return fmt.Errorf("reach the container runtime: %w", err)
	}
	defer runtime.cri.Close()
	machine, err := newMachine(b, api, runtime)
	if err != nil {
		return fmt.Errorf("read the machine: %w", err)
	}
	pods, err := newPods(b, api, runtime, machine, plugins)
	if err != nil {
		return fmt.Errorf("build the pod path: %w", err)
	}
	if err := newNode(b, api, runtime, machine, pods); err != nil {
		return fmt.Errorf("build the node: %w", err)
	}
	if err := newServers(ctx, b, api, runtime, pods); err != nil {
		return fmt.Errorf("build the node's API: %w", err)
	}
	return b.run(ctx, pods.workers.Drain)
}

func newBase(ctx context.Context, cfg *config.Config, opts Options) (_ *base, err error) {
	b := &base{cfg: cfg, opts: opts, log: opts.Log, clock: clock.RealClock{}}
	b.began = b.clock.Now()
	if b.metrics, err = metrics.New(b.clock); err != nil {
		return nil, err
	}
	if b.nodeName, err = host.Hostname(cfg.Flags.HostnameOverride); err != nil {
		return nil, err
	}
	if cfg.Kubelet.Tracing != nil {
		if b.tracing, err = tracing.New(ctx, cfg.Kubelet.Tracing, b.nodeName, b.log); err != nil {
			return nil, fmt.Errorf("prepare tracing: %w", err)
		}
		b.add("tracing", b.tracing.Run)
	}
	return b, nil
}

// run runs all parts. The failure of one ends the others: an agent that lacks a part is
// better restarted than trusted.
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
	b.log.Info("agent is running", "node", b.nodeName)
	if err := host.NotifyReady(); err != nil {
		b.log.Warn("notify service manager failed", "state", "ready", "err", err)
	}
	return group.Wait()
}
