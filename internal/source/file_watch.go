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

// Saving a file or replacing many symlinks causes a burst of events. The files are read after a pause of
// settlePause, and after settleLimit in any case.
const (
	settlePause = 50 * time.Millisecond
	settleLimit = 100 * time.Millisecond
)

// notifier watches directories with inotify. Without inotify, whose instances are limited, it has no
// events, and changes are found by the periodic rescan.
type notifier struct {
	log     *slog.Logger
	watcher *fsnotify.Watcher
	dirs    map[string]identity // by path, to detect that a path is another directory
}

func newNotifier(newWatcher func() (*fsnotify.Watcher, error), log *slog.Logger) *notifier {
	watcher, err := newWatcher()
	if err != nil {
		log.Warn("file source: inotify unavailable, falling back to periodic scans", "err", err)
		watcher = nil
	}
	return &notifier{log: log, watcher: watcher, dirs: map[string]identity{}}
}

func (w *notifier) close() {
	if w.watcher != nil {
		w.watcher.Close()
	}
}

// add replaces the watched directories. It reports whether one is new, so that it must be scanned again.
func (w *notifier) add(dirs ...string) (added bool) {
	if w.watcher == nil {
		return false
	}
	watch := map[string]bool{}
	for _, dir := range dirs {
		watch[dir] = true
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		id := identify(info)
		id.size, id.ctime.Sec, id.ctime.Nsec = 0, 0, 0 // these change with the directory's content
		if known, ok := w.dirs[dir]; ok && known == id {
			continue
		}
		_ = w.watcher.Remove(dir) // the previous directory of this path may be watched
		if err := w.watcher.Add(dir); err != nil {
			w.log.Warn("file source: cannot watch directory, falling back to periodic scans", "path", dir, "err", err)
			continue
		}
		w.dirs[dir], added = id, true
	}
	for dir := range w.dirs {
		if !watch[dir] {
			_ = w.watcher.Remove(dir) // usually removed already
			delete(w.dirs, dir)
		}
	}
	return added
}

// lost forgets a directory that was removed or renamed: the kernel removes its watch, and the next
// directory may have the same inode number.
func (w *notifier) lost(e fsnotify.Event) {
	if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		delete(w.dirs, e.Name)
	}
}

// events and errors return nil channels, which are never ready, without inotify.
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

// wait waits for the end of the next burst of relevant events, or for tick. It returns the burst, and
// whether there was one: some of its events may have been lost.
func (w *notifier) wait(ctx context.Context, c clock.Clock, tick <-chan time.Time, relevant func(path string) bool) (burst []fsnotify.Event, noticed bool) {
	for {
		select {
		case e := <-w.events():
			w.lost(e)
			if !relevant(e.Name) {
				continue
			}
			burst = append(burst, e)
		case err := <-w.errors():
			// Events may have been lost, so any file may have changed.
			w.log.Warn("file source: inotify error", "err", err)
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

// interest is the set of directories and paths whose changes are relevant.
type interest struct {
	dirs    []string        // to watch
	content string          // the one of dirs in which every change is relevant, "" for none
	names   map[string]bool // relevant paths in the others
}

// interest returns the directories of the manifests, of symlink targets, and of the path itself: the path
// or a parent may not exist, or may be a symlink that is replaced.
func (f *File) interest() interest {
	i := interest{names: map[string]bool{}}
	for path := f.cfg.Path; path != filepath.Dir(path); path = filepath.Dir(path) {
		i.names[path] = true
	}
	i.dirs = append(i.dirs, nearestExisting(filepath.Dir(f.cfg.Path)))
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
		i.names[path] = true // even if the directory is being replaced
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Dir(real) != i.content {
			i.names[real] = true
			i.dirs = append(i.dirs, filepath.Dir(real))
		}
	}
	return i
}

func (i interest) relevant(path string) bool {
	return i.names[path] || i.content != "" && (path == i.content || filepath.Dir(path) == i.content)
}

// nearestExisting returns dir, or its nearest parent that exists.
func nearestExisting(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
