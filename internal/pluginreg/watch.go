package pluginreg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// rescanPeriod is how often the folder is looked at where the kernel cannot tell of changes.
const rescanPeriod = 5 * time.Second

// identity tells a socket from one that was made later at the same path. The time of the
// last change of its attributes is no part of it: plugins set modes after they listen.
type identity struct {
	dev, ino uint64
	made     syscall.Timespec
}

// folder is the registration folder as it is watched.
type folder struct {
	*Registry
	watcher *fsnotify.Watcher // nil without inotify
	// blind means that some changes are not told of.
	blind bool
}

// follow reports what is in the folder and what becomes of it until ctx is done.
func (r *Registry) follow(ctx context.Context) error {
	if err := os.MkdirAll(r.cfg.Dir, 0o755); err != nil {
		return fmt.Errorf("make plugin registration folder: %w", err)
	}
	f := &folder{Registry: r}
	var events <-chan fsnotify.Event
	var failures <-chan error
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		r.deps.Log.Warn("plugin sockets are not watched but looked for now and then", "err", err)
		f.blind = true
	} else {
		defer watcher.Close()
		f.watcher, events, failures = watcher, watcher.Events, watcher.Errors
		// The folder itself tells of its removal only when nobody listens in it any more.
		if err := watcher.Add(filepath.Dir(r.cfg.Dir)); err != nil {
			r.deps.Log.Warn("removal of the plugin registration folder may go unseen", "err", err)
		}
	}
	f.rescan(ctx)
	for {
		tick, stop := f.nextRescan()
		select {
		case e := <-events:
			if e.Op != fsnotify.Chmod && within(e.Name, r.cfg.Dir) {
				f.look(ctx, e.Name)
			}
		case err := <-failures:
			// Most likely events were lost, so anything may have changed.
			r.deps.Log.Warn("watching plugin sockets", "err", err)
			f.rescan(ctx)
		case <-tick:
			f.rescan(ctx)
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// nextRescan is never due while the kernel tells of everything.
func (f *folder) nextRescan() (<-chan time.Time, func()) {
	if !f.blind {
		return nil, func() {}
	}
	timer := f.deps.Clock.NewTimer(rescanPeriod)
	return timer.C(), func() { timer.Stop() }
}

// rescan compares what is known with all that is there.
func (f *folder) rescan(ctx context.Context) {
	for path := range f.sockets {
		f.look(ctx, path)
	}
	f.look(ctx, f.cfg.Dir)
}

// look takes in what is at path now, whatever has happened to it. Names that begin with a
// dot are left alone: plugins prepare sockets under such names.
func (f *folder) look(ctx context.Context, path string) {
	if path != f.cfg.Dir && strings.HasPrefix(filepath.Base(path), ".") {
		return
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.lost(path)
		if path == f.cfg.Dir {
			f.remake(ctx)
		}
	case err != nil:
		f.deps.Log.Warn("plugin socket cannot be looked at", "path", path, "err", err)
	case info.IsDir():
		f.enter(ctx, path)
	case info.Mode().Type() == fs.ModeSocket:
		f.found(ctx, path, identify(info))
	default:
		f.lost(path)
	}
}

// remake makes the registration folder again after somebody has removed it.
func (f *folder) remake(ctx context.Context) {
	if err := os.MkdirAll(f.cfg.Dir, 0o755); err != nil {
		f.deps.Log.Warn("plugin registration folder cannot be made again", "err", err)
		f.blind = true
		return
	}
	if f.watcher != nil {
		_ = f.watcher.Remove(f.cfg.Dir) // the one that was removed
	}
	f.enter(ctx, f.cfg.Dir)
}

// enter watches the folder, then looks at what was there before.
func (f *folder) enter(ctx context.Context, dir string) {
	if f.watcher != nil {
		if err := f.watcher.Add(dir); err != nil {
			f.deps.Log.Warn("plugin sockets are not watched but looked for now and then", "dir", dir, "err", err)
			f.blind = true
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.deps.Log.Warn("plugin sockets cannot be listed", "dir", dir, "err", err)
		return
	}
	for _, e := range entries {
		f.look(ctx, filepath.Join(dir, e.Name()))
	}
}

func identify(info fs.FileInfo) identity {
	st := info.Sys().(*syscall.Stat_t)
	return identity{dev: st.Dev, ino: st.Ino, made: st.Mtim}
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
}
