package source

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/utils/clock"
)

// An editor's save or a tool's swap of many links is a burst of events: it is read when it
// has paused for settlePause, and after settleLimit in any case.
const (
	settlePause = 50 * time.Millisecond
	settleLimit = 100 * time.Millisecond
)

// notifier is told by the kernel of changes in some directories. Without inotify (its
// instances are limited) it is never told anything, and the regular rescan has to do.
type notifier struct {
	log     *slog.Logger
	watcher *fsnotify.Watcher
	dirs    map[string]identity // what is watched, to notice that a path became another directory
}

func newNotifier(log *slog.Logger) *notifier {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("manifests are not watched but looked at now and then", "err", err)
		watcher = nil
	}
	return &notifier{log: log, watcher: watcher, dirs: map[string]identity{}}
}

func (w *notifier) close() {
	if w.watcher != nil {
		w.watcher.Close()
	}
}

// add makes these the watched directories. It reports whether one is new, so that what
// happened in it before is to be looked at.
func (w *notifier) add(dirs ...string) (fresh bool) {
	if w.watcher == nil {
		return false
	}
	wanted := map[string]bool{}
	for _, dir := range dirs {
		wanted[dir] = true
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		id := identify(info)
		id.size, id.ctime.Sec, id.ctime.Nsec = 0, 0, 0 // the directory, not what is in it
		if known, ok := w.dirs[dir]; ok && known == id {
			continue
		}
		_ = w.watcher.Remove(dir) // it may be watched as what it was before
		if err := w.watcher.Add(dir); err != nil {
			w.log.Warn("directory is not watched but looked at now and then", "dir", dir, "err", err)
			continue
		}
		w.dirs[dir], fresh = id, true
	}
	for dir := range w.dirs {
		if !wanted[dir] {
			_ = w.watcher.Remove(dir) // gone already, most often
			delete(w.dirs, dir)
		}
	}
	return fresh
}

// lost notes that a directory is not watched any more: the kernel drops the watch with a
// directory that is removed, and the next one may have its inode number.
func (w *notifier) lost(e fsnotify.Event) {
	if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		delete(w.dirs, e.Name)
	}
}

// events and errors are nil, and so never ready, without inotify.
func (w *notifier) events() <-chan fsnotify.Event {
	if w.watcher == nil {
		return nil
	}
	return w.watcher.Events
}

func (w *notifier) errors() <-chan error {
	if w.watcher == nil {
		return nil
	}
	return w.watcher.Errors
}

// wait returns at the end of the next burst of events that matter, or when tick says so. It
// returns the burst, and whether there was one: some of its events may have been lost.
func (w *notifier) wait(ctx context.Context, c clock.Clock, tick <-chan time.Time, matters func(path string) bool) (burst []fsnotify.Event, noticed bool) {
	for {
		select {
		case e := <-w.events():
			w.lost(e)
			if !matters(e.Name) {
				continue
			}
			burst = append(burst, e)
		case err := <-w.errors():
			// Most likely events were lost, so any file may have changed.
			w.log.Warn("watching manifests", "err", err)
		case <-tick:
			return nil, false
		case <-ctx.Done():
			return nil, false
		}
		return w.settle(ctx, c, burst), true
	}
}

// settle waits for the end of a burst and returns all of it.
func (w *notifier) settle(ctx context.Context, c clock.Clock, burst []fsnotify.Event) []fsnotify.Event {
	limit := c.NewTimer(settleLimit)
	defer limit.Stop()
	for {
		pause := c.NewTimer(settlePause)
		select {
		case e := <-w.events():
			pause.Stop()
			w.lost(e)
			burst = append(burst, e)
		case <-w.errors():
			pause.Stop()
		case <-pause.C():
			return burst
		case <-limit.C():
			pause.Stop()
			return burst
		case <-ctx.Done():
			pause.Stop()
			return burst
		}
	}
}

// interest is where a change can matter.
type interest struct {
	dirs    []string        // to be watched
	content string          // the one of dirs where every change matters, "" for none
	names   map[string]bool // what matters of the others
}

// interest takes in the manifests, the files that links lead to, and the path itself: it,
// or a directory above it, may be missing, or a link that someone replaces.
func (f *File) interest() interest {
	i := interest{names: map[string]bool{}}
	for path := f.cfg.Path; path != filepath.Dir(path); path = filepath.Dir(path) {
		i.names[path] = true
	}
	i.dirs = append(i.dirs, nearest(filepath.Dir(f.cfg.Path)))
	if real, err := filepath.EvalSymlinks(f.cfg.Path); err == nil {
		if info, err := os.Stat(real); err == nil && info.IsDir() {
			i.content = real
			i.dirs = append(i.dirs, real)
		}
	}
	for path := range f.files {
		if path == rootKey {
			continue
		}
		i.names[path] = true // also if the directory is just being replaced
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Dir(real) != i.content {
			i.names[real] = true
			i.dirs = append(i.dirs, filepath.Dir(real))
		}
	}
	return i
}

func (i interest) matters(path string) bool {
	return i.names[path] || i.content != "" && (path == i.content || filepath.Dir(path) == i.content)
}

// nearest is dir, or the first above it that exists.
func nearest(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
