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
)

// FileConfig says where static pods are written down.
type FileConfig struct {
	// Path is a directory of manifests, or one manifest. It need not exist yet.
	Path     string
	NodeName string
	// CheckFrequency is how often everything is looked at again in case a notification
	// was missed.
	CheckFrequency time.Duration
	// Extensions limits a directory to files with one of these (".yaml"). The reference
	// kubelet reads every file whose name does not begin with a dot; none means that.
	Extensions []string
}

// FileDeps are what a File needs from outside.
type FileDeps struct {
	Out   chan<- pod.Snapshot
	Clock clock.WithTicker
	Log   *slog.Logger
	// BadFile, where set, hears of each new problem with a file, once.
	BadFile func(path string, err error)
	// Objects, where set, takes ConfigMaps and Secrets, and allows pods to refer to them:
	// there is no API server.
	Objects Objects
}

// File is the source of static pods. A manifest that turns bad keeps its last good pods
// running, and concerns no other manifest.
type File struct {
	cfg  FileConfig
	deps FileDeps

	files   map[string]*fileState // by path
	owners  map[string]claimed    // by the names of objects
	clashes map[string]error      // by path, about names that another file has
	sent    bool
	current assembled
}

// NewFile reads nothing yet.
func NewFile(cfg FileConfig, deps FileDeps) (*File, error) {
	if cfg.Path == "" || cfg.NodeName == "" || cfg.CheckFrequency <= 0 {
		return nil, errors.New("file source: path, node name and check frequency are needed")
	}
	if deps.Out == nil || deps.Clock == nil || deps.Log == nil {
		return nil, errors.New("file source: channel, clock and log are needed")
	}
	cfg.Path = filepath.Clean(cfg.Path)
	return &File{cfg: cfg, deps: deps, files: map[string]*fileState{}}, nil
}

// Run sends a snapshot at once, even of nothing, and then on every change.
func (f *File) Run(ctx context.Context) error {
	w := newNotifier(f.deps.Log)
	defer w.close()
	rescan := f.deps.Clock.NewTicker(f.cfg.CheckFrequency)
	defer rescan.Stop()
	for noticed := true; ctx.Err() == nil; {
		var watched interest
		// Watch before reading, so that what changes in between is noticed; and again for
		// the links that reading has found.
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
		events, noticed = w.wait(ctx, f.deps.Clock, rescan.C(), watched.matters)
		if f.withdraw(ctx, f.departed(events, watched.content)) != nil {
			break
		}
	}
	return nil
}

// send passes on what the files say now, if it is news.
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
