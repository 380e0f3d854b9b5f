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
	// reload is how long logind gets to read its configuration again.
	reload = 3 * time.Second
)

// Config says how pods end.
type Config struct {
	// Groups are who gets how long; none is that nobody waits for pods.
	Groups []Group
	// RootDir holds the state file.
	RootDir string
	// LogindDir holds additions to logind's configuration.
	LogindDir string
	// Bus is the address of the bus; "" is the system's.
	Bus string
}

// Deps are the manager's surroundings.
type Deps struct {
	// Pods lists those that run.
	Pods func() []*v1.Pod
	// End stops a pod within so many seconds, and returns when nothing of it is left.
	End func(ctx context.Context, p *v1.Pod, grace int64)
	// Changed is called when Down may answer differently.
	Changed func()
	Events  pod.Events
	Node    *v1.ObjectReference
	// Measured is told when the last shutdown began and ended, which is zero while it has
	// not; may be nil.
	Measured func(began, ended time.Time)
	Clock    clock.WithDelayedExecution
	Log      *slog.Logger
}

// Manager ends pods before the machine goes down.
type Manager struct {
	cfg  Config
	deps Deps
	down atomic.Bool
}

// New validates and starts nothing.
func New(cfg Config, deps Deps) (*Manager, error) {
	if err := require.Set("new shutdown manager", map[string]any{
		"Pods": deps.Pods, "End": deps.End, "Changed": deps.Changed, "Events": deps.Events,
		"Node": deps.Node, "Clock": deps.Clock, "Log": deps.Log, "RootDir": cfg.RootDir,
		"LogindDir": cfg.LogindDir,
	}); err != nil {
		return nil, err
	}
	cfg.Groups = inOrder(cfg.Groups)
	return &Manager{cfg: cfg, deps: deps}, nil
}

// Down reports whether the machine is going down.
func (m *Manager) Down() bool { return m.down.Load() }

// Err is why the node is not ready.
func (m *Manager) Err() error {
	if m.Down() {
		return errors.New("node is shutting down")
	}
	return nil
}

// Run waits for a shutdown until ctx ends. A bus that is not there, or goes away, is tried
// again: a machine without systemd must run pods all the same.
func (m *Manager) Run(ctx context.Context) error {
	if total(m.cfg.Groups) == 0 {
		<-ctx.Done()
		return nil
	}
	m.measure(m.load())
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
		m.deps.Log.Warn("a shutdown of the machine would not be noticed", "retry", wait, "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-m.deps.Clock.After(wait):
		}
	}
}

// watch holds shutdowns up and acts on them, until the bus fails.
func (m *Manager) watch(ctx context.Context) error {
	l, err := connect(ctx, m.cfg.Bus)
	if err != nil {
		return err
	}
	defer func() { _ = l.close() }()
	if err := m.claimTime(ctx, l); err != nil {
		return err
	}
	held, err := l.hold(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }()
	m.deps.Log.Info("shutdowns of the machine wait for pods", "for", total(m.cfg.Groups))
	for {
		down, err := l.next(ctx)
		if err != nil {
			return err
		}
		m.set(down)
		if down {
			m.endPods(ctx)
			_ = held.Close() // logind goes on
			continue
		}
		_ = held.Close()
		if held, err = l.hold(ctx); err != nil {
			return err
		}
	}
}

// claimTime makes sure that logind waits for as long as the pods may take.
func (m *Manager) claimTime(ctx context.Context, l *login) error {
	wanted := total(m.cfg.Groups)
	granted, err := l.delay()
	if err != nil || granted >= wanted {
		return err
	}
	if err := l.extend(ctx, m.cfg.LogindDir, wanted); err != nil {
		return err
	}
	for left := reload; ; left -= reload / 30 {
		if granted, err = l.delay(); err != nil || granted >= wanted {
			return err
		}
		if left <= 0 {
			return fmt.Errorf("logind waits for %v at most, and pods may take %v", granted, wanted)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.deps.Clock.After(reload / 30):
		}
	}
}

func (m *Manager) set(down bool) {
	what := "Shutdown manager detected shutdown event"
	if !down {
		what = "Shutdown manager detected shutdown cancellation"
	}
	m.deps.Log.Info("the machine is going down", "is", down)
	m.deps.Events.Eventf(m.deps.Node, v1.EventTypeNormal, "NodeShutdown", "%s", what)
	m.down.Store(down)
	m.deps.Changed()
}

// endPods ends one group after the other. A group that takes longer than it may is left
// behind.
func (m *Manager) endPods(ctx context.Context) {
	began := m.deps.Clock.Now()
	m.note(state{Began: began})
	for i, pods := range assign(m.cfg.Groups, m.deps.Pods()) {
		if len(pods) > 0 {
			m.endGroup(ctx, m.cfg.Groups[i], pods)
		}
	}
	m.note(state{Began: began, Ended: m.deps.Clock.Now()})
}

func (m *Manager) endGroup(ctx context.Context, g Group, pods []*v1.Pod) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, p := range pods {
		all.Go(func() { m.deps.End(ctx, p, graceOf(p, g)) })
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	timer := m.deps.Clock.NewTimer(g.Grace)
	select {
	case <-done:
	case <-ctx.Done():
	case <-timer.C():
		m.deps.Log.Warn("pods take longer to end than they may", "priority", g.Priority, "time", g.Grace)
	}
	timer.Stop()
	cancel() // those that still wait give up
	<-done
}

// note keeps when a shutdown began and ended, for whoever asks after the machine is up again.
func (m *Manager) note(s state) {
	if err := s.save(filepath.Join(m.cfg.RootDir, stateFile)); err != nil {
		m.deps.Log.Warn("the time of the shutdown is not kept", "err", err)
	}
	m.measure(s)
}

func (m *Manager) load() state {
	s, err := loadState(filepath.Join(m.cfg.RootDir, stateFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.deps.Log.Warn("the time of the last shutdown is not known", "err", err)
	}
	return s
}

func (m *Manager) measure(s state) {
	if m.deps.Measured != nil {
		m.deps.Measured(s.Began, s.Ended)
	}
}
