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

// rescanPeriod is how often the directory is scanned if inotify is not available.
const rescanPeriod = 5 * time.Second

// Limits of the directories below the registration directory.
const (
	maxDepth = 8
	maxDirs  = 512
)

// identity distinguishes a socket from one that was created later at the same path. The inode
// change time is not part of it: plugins change the mode after they listen.
type identity struct {
	dev, ino uint64
	modified syscall.Timespec
}

// dirWatcher watches the registration directory.
type dirWatcher struct {
	*Registry
	watcher *fsnotify.Watcher // nil without inotify
	// poll is set if inotify does not report all changes.
	poll bool
}

// watch handles the sockets in the directory, and their changes, until ctx is done.
func (r *Registry) watch(ctx context.Context) error {
	if err := os.MkdirAll(r.cfg.Dir, 0o755); err != nil {
		return fmt.Errorf("create plugin registration directory: %w", err)
	}
	f := &dirWatcher{Registry: r}
	var events <-chan fsnotify.Event
	var failures <-chan error
	watcher, err := r.deps.NewWatcher()
	if err != nil {
		r.deps.Log.Warn("plugin registry: inotify unavailable, polling for sockets", "err", err)
		f.poll = true
	} else {
		defer watcher.Close()
		f.watcher, events, failures = watcher, watcher.Events, watcher.Errors
		// inotify reports the removal of the directory itself only once no socket in it is open.
		if err := watcher.Add(filepath.Dir(r.cfg.Dir)); err != nil {
			r.deps.Log.Warn("plugin registry: cannot watch for removal of the registration directory", "err", err)
		}
	}
	f.rescan(ctx)
	for {
		tick, stop := f.nextRescan()
		select {
		case e := <-events:
			if e.Op != fsnotify.Chmod && within(e.Name, r.cfg.Dir) {
				f.checkPath(ctx, e.Name)
			}
		case err := <-failures:
			// Most likely events were lost, so anything may have changed.
			r.deps.Log.Warn("plugin registry: watch failed, scanning the directory", "err", err)
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

// nextRescan never fires while inotify reports all changes.
func (f *dirWatcher) nextRescan() (<-chan time.Time, func()) {
	if !f.poll {
		return nil, func() {}
	}
	timer := f.deps.Clock.NewTimer(rescanPeriod)
	return timer.C(), func() { timer.Stop() }
}

// rescan checks all known sockets and the whole directory.
func (f *dirWatcher) rescan(ctx context.Context) {
	for path := range f.sockets {
		f.checkPath(ctx, path)
	}
	f.checkPath(ctx, f.cfg.Dir)
}

// checkPath handles what is at path now, regardless of which event it had. It skips names that
// begin with a dot: plugins prepare sockets under such names.
func (f *dirWatcher) checkPath(ctx context.Context, path string) {
	if path != f.cfg.Dir && strings.HasPrefix(filepath.Base(path), ".") {
		return
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.removeSocket(path)
		if path == f.cfg.Dir {
			f.recreate(ctx)
		}
	case err != nil:
		f.deps.Log.Warn("plugin registry: failed to stat socket", "path", path, "err", err)
	case info.IsDir():
		f.checkDir(ctx, path)
	case info.Mode().Type() == fs.ModeSocket:
		f.registerSocket(ctx, path, identify(info))
	default:
		f.removeSocket(path)
	}
}

// checkDir watches a directory below the registration directory. It does not follow a link to a directory,
// as it may lead to a large tree or back here, nor watch more directories than plugins need.
func (f *dirWatcher) checkDir(ctx context.Context, path string) {
	if path != f.cfg.Dir {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			f.deps.Log.Info("plugin registry: link to a directory ignored", "path", path)
			f.removeSocket(path)
			return
		}
		if strings.Count(path[len(f.cfg.Dir):], string(filepath.Separator)) > maxDepth || f.watcher != nil && len(f.watcher.WatchList()) > maxDirs {
			f.deps.Log.Warn("plugin registry: too many directories, sockets in this one are ignored", "path", path)
			return
		}
	}
	f.watchDir(ctx, path)
}

// recreate creates the registration directory after it was removed.
func (f *dirWatcher) recreate(ctx context.Context) {
	if err := os.MkdirAll(f.cfg.Dir, 0o755); err != nil {
		f.deps.Log.Warn("plugin registry: failed to recreate the registration directory", "err", err)
		f.poll = true
		return
	}
	if f.watcher != nil {
		_ = f.watcher.Remove(f.cfg.Dir) // the one that was removed
	}
	f.watchDir(ctx, f.cfg.Dir)
}

// watchDir watches the directory, then checks what it already holds.
func (f *dirWatcher) watchDir(ctx context.Context, dir string) {
	if f.watcher != nil {
		if err := f.watcher.Add(dir); err != nil {
			f.deps.Log.Warn("plugin registry: failed to watch directory, polling for sockets", "path", dir, "err", err)
			f.poll = true
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.deps.Log.Warn("plugin registry: failed to list directory", "path", dir, "err", err)
		return
	}
	for _, e := range entries {
		f.checkPath(ctx, filepath.Join(dir, e.Name()))
	}
}

func identify(info fs.FileInfo) identity {
	st := info.Sys().(*syscall.Stat_t)
	return identity{dev: st.Dev, ino: st.Ino, modified: st.Mtim}
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
}
