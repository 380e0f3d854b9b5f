package source

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// FileConfig is the configuration of a File.
type FileConfig struct {
	// Path is a directory of manifests, or one manifest. It need not exist yet.
	Path     string
	NodeName string
	// CheckFrequency is how often all files are checked, in case an inotify event was lost.
	CheckFrequency time.Duration
	// Extensions limits a directory to files with one of these, for example ".yaml". Without any, all
	// files are read whose names do not begin with a dot, as by the reference kubelet.
	Extensions []string
}

// FileDeps are the dependencies of a File.
type FileDeps struct {
	Out   chan<- pod.Snapshot
	Clock clock.WithTicker
	Log   *slog.Logger
	// OnError, if set, is called once for each new error of a file.
	OnError func(path string, err error)
	// Objects, if set, receives ConfigMaps and Secrets, and pods may refer to them: there is no API
	// server.
	Objects Objects
	// Runtime, if set, has the pods that run already. They keep their UIDs.
	Runtime Runtime
	// NewWatcher opens inotify; nil means fsnotify.NewWatcher.
	NewWatcher func() (*fsnotify.Watcher, error)
}

// File is the source of static pods. A manifest that becomes invalid keeps its last valid pods, and does
// not affect other manifests.
type File struct {
	cfg  FileConfig
	deps FileDeps

	files     map[string]*fileState // by path
	owners    map[string]owner      // by object name
	conflicts map[string]error      // by path, for names that another file has
	sent      bool
	current   content
	adopter   *adopter
}

// NewFile validates and starts nothing.
func NewFile(cfg FileConfig, deps FileDeps) (*File, error) {
	if err := require.Set("new file source", map[string]any{
		"Path": cfg.Path, "NodeName": cfg.NodeName, "Out": deps.Out, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	if cfg.CheckFrequency <= 0 {
		return nil, errors.New("new file source: CheckFrequency must be positive")
	}
	if deps.NewWatcher == nil {
		deps.NewWatcher = fsnotify.NewWatcher
	}
	cfg.Path = filepath.Clean(cfg.Path)
	return &File{cfg: cfg, deps: deps, files: map[string]*fileState{}, adopter: newAdopter(deps.Runtime)}, nil
}

// Run sends a snapshot at the start, even an empty one, and then after every change.
func (f *File) Run(ctx context.Context) error {
	if f.adopter.wait(ctx) != nil {
		return nil
	}
	w := newNotifier(f.deps.NewWatcher, f.deps.Log)
	defer w.close()
	rescan := f.deps.Clock.NewTicker(f.cfg.CheckFrequency)
	defer rescan.Stop()
	for noticed := true; ctx.Err() == nil; {
		var watched interest
		// Watch before reading, so that no change in between is lost; and again for the symlinks that
		// reading has found.
		for again := true; again; {
			w.add(f.interest().dirs...)
			f.scan(noticed)
			watched = f.interest()
			again = w.add(watched.dirs...)
		}
		if f.send(ctx) != nil {
			break
		}
		var events []fsnotify.Event
		events, noticed = w.wait(ctx, f.deps.Clock, rescan.C(), watched.relevant)
		if f.withdraw(ctx, f.removed(events, watched.content)) != nil {
			break
		}
	}
	return nil
}

// send sends a snapshot if the content of the files has changed.
func (f *File) send(ctx context.Context) error {
	now, ok := f.assemble()
	if !ok || (f.sent && now.same(f.current)) {
		return nil
	}
	if f.deps.Objects != nil {
		f.deps.Objects.SetObjects(now.configMaps, now.secrets)
	}
	select {
	case f.deps.Out <- pod.Snapshot{Source: pod.SourceFile, Pods: now.pods}:
	case <-ctx.Done():
		return ctx.Err()
	}
	f.sent, f.current = true, now
	return nil
}
