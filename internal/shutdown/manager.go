package shutdown

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/backoff"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

const (
	firstRetry = time.Second
	lastRetry  = time.Minute
	// reloadTimeout is how long logind may take to reload its configuration.
	reloadTimeout = 3 * time.Second
)

// Config configures a Manager.
type Config struct {
	// Groups are the grace periods by priority; without any, shutdowns are not delayed.
	Groups []Group
	// RootDir holds the state file.
	RootDir string
	// LogindDir is logind's directory of configuration drop-ins.
	LogindDir string
	// Bus is the address of the D-Bus; "" means the system bus.
	Bus string
}

// Deps are the dependencies of a Manager.
type Deps struct {
	// Pods lists the running pods.
	Pods func() []*v1.Pod
	// TerminatePod stops a pod within the grace period, in seconds, and returns when it has
	// released its resources.
	TerminatePod func(ctx context.Context, p *v1.Pod, grace int64)
	// ShuttingDownChanged is called when the result of ShuttingDown changes.
	ShuttingDownChanged func()
	Events              pod.Events
	Node                *v1.ObjectReference
	// ReportTimes is called with the start and the end of the last shutdown. The end is zero
	// during a shutdown. May be nil.
	ReportTimes func(began, ended time.Time)
	Clock       clock.WithDelayedExecution
	Log         *slog.Logger
}

// Manager terminates pods before the machine shuts down.
type Manager struct {
	cfg          Config
	deps         Deps
	shuttingDown atomic.Bool
}

// New validates its arguments and starts nothing.
func New(cfg Config, deps Deps) (*Manager, error) {
	if err := require.Set("new shutdown manager", map[string]any{
		"Pods": deps.Pods, "TerminatePod": deps.TerminatePod, "ShuttingDownChanged": deps.ShuttingDownChanged, "Events": deps.Events,
		"Node": deps.Node, "Clock": deps.Clock, "Log": deps.Log, "RootDir": cfg.RootDir,
		"LogindDir": cfg.LogindDir,
	}); err != nil {
		return nil, err
	}
	cfg.Groups = sortGroups(cfg.Groups)
	return &Manager{cfg: cfg, deps: deps}, nil
}

// ShuttingDown reports whether the machine is shutting down.
func (m *Manager) ShuttingDown() bool { return m.shuttingDown.Load() }

// ReadyCheck returns an error while the machine is shutting down: the node is not ready.
func (m *Manager) ReadyCheck() error {
	if m.ShuttingDown() {
		return errors.New("node is shutting down")
	}
	return nil
}

// Run waits for shutdowns until ctx is done. It retries if the D-Bus is not available or
// disconnects: a machine without systemd runs pods, too.
func (m *Manager) Run(ctx context.Context) error {
	if totalGrace(m.cfg.Groups) == 0 {
		<-ctx.Done()
		return nil
	}
	m.reportTimes(m.lastShutdown())
	retry := backoff.Backoff{First: firstRetry, Longest: lastRetry}
	for {
		began := m.deps.Clock.Now()
		err := m.watch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if m.deps.Clock.Since(began) > lastRetry {
			retry.Reset()
		}
		wait := retry.Next()
		m.deps.Log.Warn("node shutdown: cannot watch logind for shutdowns, will retry", "retryIn", wait, "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-m.deps.Clock.After(wait):
		}
	}
}

// watch inhibits shutdowns and handles their signals until the D-Bus connection fails.
func (m *Manager) watch(ctx context.Context) error {
	l, err := connect(ctx, m.cfg.Bus)
	if err != nil {
		return err
	}
	defer func() { _ = l.close() }()
	if err := m.ensureInhibitDelay(ctx, l); err != nil {
		return err
	}
	inhibitor, err := l.inhibit(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = inhibitor.Close() }()
	m.deps.Log.Info("node shutdown: inhibitor lock taken", "gracePeriod", totalGrace(m.cfg.Groups))
	for {
		starting, err := l.nextSignal(ctx)
		if err != nil {
			return err
		}
		m.setShuttingDown(starting)
		if starting {
			m.terminatePods(ctx)
			_ = inhibitor.Close() // logind proceeds
			continue
		}
		_ = inhibitor.Close()
		if inhibitor, err = l.inhibit(ctx); err != nil {
			return err
		}
	}
}

// ensureInhibitDelay raises logind's maximum delay to the sum of the grace periods if it is
// shorter.
func (m *Manager) ensureInhibitDelay(ctx context.Context, l *logindConn) error {
	required := totalGrace(m.cfg.Groups)
	delay, err := l.inhibitDelay()
	if err != nil || delay >= required {
		return err
	}
	if err := l.setInhibitDelay(ctx, m.cfg.LogindDir, required); err != nil {
		return err
	}
	for left := reloadTimeout; ; left -= reloadTimeout / 30 {
		if delay, err = l.inhibitDelay(); err != nil || delay >= required {
			return err
		}
		if left <= 0 {
			return fmt.Errorf("raise logind's inhibit delay: it is %v, pods require %v", delay, required)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.deps.Clock.After(reloadTimeout / 30):
		}
	}
}

func (m *Manager) setShuttingDown(is bool) {
	message := "Shutdown manager detected shutdown event"
	if !is {
		message = "Shutdown manager detected shutdown cancellation"
	}
	m.deps.Log.Info("node shutdown: signal from logind", "shuttingDown", is)
	m.deps.Events.Eventf(m.deps.Node, v1.EventTypeNormal, "Shutdown", "%s", message)
	m.shuttingDown.Store(is)
	m.deps.ShuttingDownChanged()
}

// terminatePods terminates one group after the other. It does not wait for a group longer than
// its grace period.
func (m *Manager) terminatePods(ctx context.Context) {
	began := m.deps.Clock.Now()
	m.saveState(state{Began: began})
	for i, pods := range groupPods(m.cfg.Groups, m.deps.Pods()) {
		if len(pods) > 0 {
			m.terminateGroup(ctx, m.cfg.Groups[i], pods)
		}
	}
	m.saveState(state{Began: began, Ended: m.deps.Clock.Now()})
}

func (m *Manager) terminateGroup(ctx context.Context, g Group, pods []*v1.Pod) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, p := range pods {
		all.Go(func() { m.deps.TerminatePod(ctx, p, gracePeriod(p, g)) })
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	timer := m.deps.Clock.NewTimer(g.Grace)
	select {
	case <-done:
	case <-ctx.Done():
	case <-timer.C():
		m.deps.Log.Warn("node shutdown: pods did not terminate within the grace period", "priority", g.Priority, "gracePeriod", g.Grace)
	}
	timer.Stop()
	cancel() // TerminatePod returns for the pods that still run
	<-done
}

// saveState writes and reports the times of a shutdown. The file is read after the machine has
// booted again.
func (m *Manager) saveState(s state) {
	if err := s.save(filepath.Join(m.cfg.RootDir, stateFile)); err != nil {
		m.deps.Log.Warn("node shutdown: failed to write state file", "err", err)
	}
	m.reportTimes(s)
}

func (m *Manager) lastShutdown() state {
	s, err := loadState(filepath.Join(m.cfg.RootDir, stateFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.deps.Log.Warn("node shutdown: failed to read state file", "err", err)
	}
	return s
}

func (m *Manager) reportTimes(s state) {
	if m.deps.ReportTimes != nil {
		m.deps.ReportTimes(s.Began, s.Ended)
	}
}
