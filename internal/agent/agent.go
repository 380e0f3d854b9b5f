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
	"swiftlet/internal/cri"
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
	// Show and Forget are told of each pod's status, for people to look at; may be nil.
	Show   func(*v1.Pod)
	Forget func(types.UID)
}

// Agent is the node agent, wired.
type Agent struct {
	cfg   *config.Config
	opts  Options
	log   *slog.Logger
	clock clock.WithTickerAndDelayedExecution

	name     string // of the node
	hostname string

	began   time.Time
	metrics *metrics.Metrics
	tracing *tracing.Provider // nil where nobody asked for it
	cri     *cri.Client
	api     api
	machine machine
	given   given
	pods    pods
	edge    edge
}

// part is something that runs until its context ends.
type part struct {
	name string
	run  func(context.Context) error
}

// Run brings the agent up and blocks until ctx ends, a part fails, or all pods are drained.
func Run(ctx context.Context, cfg *config.Config, opts Options) error {
	if opts.Log == nil {
		return errors.New("run agent: a log is needed")
	}
	a := &Agent{cfg: cfg, opts: opts, log: opts.Log, clock: clock.RealClock{}}
	a.began = a.clock.Now()
	var err error
	if a.metrics, err = metrics.New(a.clock); err != nil {
		return err
	}
	if path := cfg.Flags.LockFile; path != "" {
		a.log.Info("waiting for lock file", "path", path)
		lock, err := host.Lock(ctx, path, cfg.Flags.ExitOnLockContention)
		if err != nil {
			return err
		}
		defer lock.Close()
	}
	if a.hostname, err = host.Hostname(cfg.Flags.HostnameOverride); err != nil {
		return err
	}
	a.name = a.hostname
	if err := a.configureHost(); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		make func(context.Context) error
	}{
		{"prepare tracing", a.makeTracing},
		// A bad kubeconfig is said at once, not when the runtime is up.
		{"reach the API server", a.connect},
		{"find credential plugins", a.makeCredentialPlugins},
		{"reach the container runtime", a.dialRuntime},
		{"take stock of the machine", a.makeMachine},
		{"wire the path of a pod", a.makePods},
		{"open the node's API", a.makeEdge},
		{"start the watchdog", a.makeWatchdog},
	} {
		if err := step.make(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	defer a.cri.Close()
	return a.run(ctx)
}

// run lets all parts run side by side. The failure of one ends the others: an agent that
// lacks a part is better restarted than trusted.
func (a *Agent) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	for _, list := range [][]part{a.api.parts, a.machine.parts, a.pods.parts, a.edge.parts} {
		for _, p := range list {
			group.Go(func() error {
				if err := p.run(ctx); err != nil && ctx.Err() == nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
				return nil
			})
		}
	}
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-a.opts.Drain:
		}
		a.log.Info("stopping all pods")
		err := a.pods.workers.Drain(ctx)
		stop()
		return err
	})
	a.log.Info("agent is running", "node", a.name)
	if err := host.NotifyReady(); err != nil {
		a.log.Warn("notify service manager failed", "state", "ready", "err", err)
	}
	return group.Wait()
}

// configureHost prepares the process and the kernel for the work of a node. What this process
// may not change is logged: its pods matter more.
func (a *Agent) configureHost() error {
	kc := &a.cfg.Kubelet
	if err := host.SetOOMScoreAdj(*kc.OOMScoreAdj); err != nil {
		a.log.Warn("cannot configure the agent's process", "oomScoreAdj", *kc.OOMScoreAdj, "err", err)
	}
	if err := host.RaiseOpenFiles(uint64(kc.MaxOpenFiles)); err != nil {
		a.log.Warn("cannot configure the agent's process", "maxOpenFiles", kc.MaxOpenFiles, "err", err)
	}
	protect := kc.ProtectKernelDefaults
	if a.cfg.Flags.Kubeconfig == "" && !protect {
		return nil // a machine without a control plane keeps its owner's settings
	}
	err := host.SetKernelSettings(protect)
	if err != nil && !protect {
		a.log.Warn("cannot configure the kernel", "err", err)
		return nil
	}
	return err
}

// makeWatchdog adds the watchdog where the service manager asked for one.
func (a *Agent) makeWatchdog(context.Context) error {
	w, err := host.NewWatchdog(host.WatchdogDeps{Healthy: a.pods.loop.Healthy, Clock: a.clock, Log: a.log})
	if err != nil || w == nil {
		return err
	}
	a.edge.parts = append(a.edge.parts, part{"watchdog", w.Run})
	return nil
}
