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

// longest is how long a record may be, by the kernel's own word.
const longest = 8192

// Config says what the watcher must know.
type Config struct {
	// RootDir holds the state file.
	RootDir string
	// BootID names this start of the machine.
	BootID string
}

// Deps are the watcher's surroundings.
type Deps struct {
	// Kernel is /dev/kmsg: each read gives one record, and waits where there is none. Run
	// closes it.
	Kernel io.ReadCloser
	Events pod.Events
	Node   *v1.ObjectReference
	Log    *slog.Logger
}

// Watcher tells of system OOMs.
type Watcher struct {
	cfg  Config
	deps Deps
}

// New validates and starts nothing.
func New(cfg Config, deps Deps) (*Watcher, error) {
	if err := require.Set("new OOM watcher", map[string]any{
		"RootDir": cfg.RootDir, "Kernel": deps.Kernel, "Events": deps.Events, "Node": deps.Node,
		"Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	return &Watcher{cfg: cfg, deps: deps}, nil
}

// Run reads the kernel's log until ctx ends, from the oldest record that is still there: an
// OOM may have been what ended the last agent. Each is told once, whoever tells it.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.deps.Kernel.Close()
	defer context.AfterFunc(ctx, func() { w.deps.Kernel.Close() })()
	path := filepath.Join(w.cfg.RootDir, stateFile)
	known, err := loadState(path)
	if err != nil {
		w.deps.Log.Warn("OOMs may be told of again", "err", err)
	}
	var found finder
	for buffer := make([]byte, longest); ; {
		n, err := w.deps.Kernel.Read(buffer)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.EPIPE):
			w.deps.Log.Info("the kernel's log is written faster than it is read; an OOM may be missed")
			continue
		case err != nil:
			// Pods run all the same.
			w.deps.Log.Error("system OOMs are no longer noticed: the kernel's log cannot be read", "err", err)
			return nil
		}
		r, ok := parseRecord(buffer[:n])
		if !ok {
			continue
		}
		if k, ok := found.read(r.text); ok && !known.told(w.cfg.BootID, r) {
			w.tell(k, path, r)
		}
	}
}

// tell tells of a kill. One that keeps to a group's limit is that group's affair: the kernel
// counts it there, and the runtime says how the container ended.
func (w *Watcher) tell(k kill, path string, r record) {
	log := w.deps.Log.With("process", k.process, "pid", k.pid, "cgroup", k.group)
	if !k.system {
		log.Debug("the kernel killed a process of a group that is at its limit of memory")
		return
	}
	log.Warn("the machine had no memory left, and the kernel killed a process")
	w.deps.Events.Eventf(w.deps.Node, v1.EventTypeWarning, "SystemOOM", "System OOM encountered, victim process: %s, pid: %d", k.process, k.pid)
	if err := checkpoint.Write(path, state{BootID: w.cfg.BootID, Sequence: r.sequence}); err != nil {
		log.Warn("this OOM may be told of again", "err", err)
	}
}
