package oom

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/checkpoint"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// maxRecord is the kernel's limit on the size of a record.
const maxRecord = 8192

// Config is fixed for the life of the agent.
type Config struct {
	// RootDir holds the state file.
	RootDir string
	// BootID identifies the current boot.
	BootID string
}

// Deps are the Watcher's dependencies.
type Deps struct {
	// KernelLog is /dev/kmsg: each read returns one record, or blocks until there is one. Run
	// closes it.
	KernelLog io.ReadCloser
	Events    pod.Events
	Node      *v1.ObjectReference
	Log       *slog.Logger
}

// Watcher reports system OOMs.
type Watcher struct {
	cfg  Config
	deps Deps
}

// New validates its arguments and starts nothing.
func New(cfg Config, deps Deps) (*Watcher, error) {
	if err := require.Set("new OOM watcher", map[string]any{
		"RootDir": cfg.RootDir, "KernelLog": deps.KernelLog, "Events": deps.Events, "Node": deps.Node,
		"Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	return &Watcher{cfg: cfg, deps: deps}, nil
}

// Run reads the kernel log until ctx is done, from the oldest record on: an OOM may have ended
// the previous kubelet. Each OOM is reported once, even across restarts.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.deps.KernelLog.Close()
	defer context.AfterFunc(ctx, func() { w.deps.KernelLog.Close() })()
	path := filepath.Join(w.cfg.RootDir, stateFile)
	last, err := loadState(path)
	if err != nil {
		w.deps.Log.Warn("oom: read state file failed, OOMs may be reported twice", "err", err)
	}
	var parser killParser
	for buffer := make([]byte, maxRecord); ; {
		n, err := w.deps.KernelLog.Read(buffer)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.EPIPE):
			w.deps.Log.Info("oom: kernel log records were lost, an OOM may be missed")
			continue
		case err != nil:
			// Not fatal: pods run without it.
			w.deps.Log.Error("oom: read kernel log failed, system OOMs will not be reported", "err", err)
			return nil
		}
		r, ok := parseRecord(buffer[:n])
		if !ok {
			continue
		}
		if k, ok := parser.read(r.text); ok && !last.reported(w.cfg.BootID, r) {
			w.report(k, path, r)
		}
	}
}

// report records an event for a kill because the machine was out of memory. For a kill at the
// limit of a cgroup, the kernel counts it there and the runtime reports the container's exit.
func (w *Watcher) report(k kill, path string, r record) {
	log := w.deps.Log.With("process", k.process, "pid", k.pid, "cgroup", k.cgroup)
	if !k.system {
		log.Debug("oom: process killed at the memory limit of its cgroup")
		return
	}
	log.Warn("oom: system out of memory, process killed")
	w.deps.Events.Eventf(w.deps.Node, v1.EventTypeWarning, "SystemOOM", "System OOM encountered, victim process: %s, pid: %d", k.process, k.pid)
	if err := checkpoint.Write(path, state{BootID: w.cfg.BootID, Sequence: r.sequence}); err != nil {
		log.Warn("oom: write state file failed, this OOM may be reported twice", "err", err)
	}
}
