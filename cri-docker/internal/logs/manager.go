package logs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// ErrNotFollowed says that the container has no log that is being written.
var ErrNotFollowed = errors.New("the container's log is not being written")

// Logs converts the logs of all containers. What it knows survives in a directory of positions.
type Logs struct {
	dir     string
	log     *slog.Logger
	watcher *fsnotify.Watcher
	ctx     context.Context // of the followers; ends with Run
	stop    context.CancelFunc
	group   sync.WaitGroup

	mu        sync.Mutex
	followers map[string]*following // by container
	sources   map[string]*following // by Docker's file
}

// following is a follower with what the manager needs to end it.
type following struct {
	*follower
	cancel context.CancelFunc
	ended  sync.Once
}

// New prepares the directory of positions. Run must be called.
func New(dir string, log *slog.Logger) (*Logs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("prepare log positions: %w", err)
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch logs: %w", err)
	}
	l := &Logs{dir: dir, log: log, watcher: watcher, followers: map[string]*following{}, sources: map[string]*following{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l, nil
}

// Run wakes followers when Docker writes, until ctx ends. It returns when all followers have stopped.
func (l *Logs) Run(ctx context.Context) error {
	defer l.group.Wait()
	defer l.stop()
	defer l.watcher.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-l.watcher.Events:
			l.mu.Lock()
			if f := l.sources[event.Name]; f != nil {
				f.notify()
			}
			l.mu.Unlock()
		case err := <-l.watcher.Errors: // such as an overflow: any log may have grown
			l.log.Warn("lost notifications of logs, reading all", "err", err)
			l.mu.Lock()
			for _, f := range l.followers {
				f.notify()
			}
			l.mu.Unlock()
		}
	}
}

func (f *follower) notify() {
	select {
	case f.wake <- struct{}{}:
	default: // it will run in any case
	}
}

// Follow converts Docker's log source of a container to target, from where the last run of this program
// stopped. A container that is followed already stays so.
func (l *Logs) Follow(id, source, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("prepare log directory: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.followers[id] != nil || l.ctx.Err() != nil {
		return nil
	}
	f := &following{follower: &follower{
		id: id, source: filepath.Clean(source), target: target, saved: l.position(id), log: l.log,
		wake: make(chan struct{}, 1), reopen: make(chan chan error), finish: make(chan struct{}), finished: make(chan struct{}),
	}}
	if err := f.open(); err != nil { // the log exists when the container's start returns
		return err
	}
	if err := l.watcher.Add(f.source); err != nil {
		f.close()
		return fmt.Errorf("watch log %s: %w", f.source, err)
	}
	ctx, cancel := context.WithCancel(l.ctx)
	f.cancel = cancel
	l.followers[id], l.sources[f.source] = f, f
	l.group.Go(func() { f.run(ctx) })
	return nil
}

// Reopen creates the log again after it was renamed, and returns when all later lines go there.
func (l *Logs) Reopen(ctx context.Context, id string) error {
	f := l.find(id)
	if f == nil {
		return fmt.Errorf("reopen log of container %s: %w", id, ErrNotFollowed)
	}
	answer := make(chan error, 1)
	select {
	case f.reopen <- answer:
	case <-f.finished:
		return fmt.Errorf("reopen log of container %s: %w", id, ErrNotFollowed)
	case <-ctx.Done():
		return fmt.Errorf("reopen log of container %s: %w", id, ctx.Err())
	}
	if err := <-answer; err != nil {
		return fmt.Errorf("reopen log of container %s: %w", id, err)
	}
	return nil
}

// Finish converts the rest of the log of a container that has exited, and returns when all is written, or
// when ctx ends; the rest follows then.
func (l *Logs) Finish(ctx context.Context, id, source, target string) error {
	if target == "" || source == "" || l.done(id) {
		return nil
	}
	if err := l.Follow(id, source, target); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Docker has removed the log with the container
		}
		return err
	}
	f := l.find(id)
	if f == nil {
		return nil
	}
	f.ended.Do(func() { close(f.finish) })
	select {
	case <-f.finished:
		l.forget(id, f)
		return nil
	case <-ctx.Done():
		return fmt.Errorf("finish log of container %s: %w", id, ctx.Err())
	}
}

// Remove forgets a container that is removed.
func (l *Logs) Remove(id string) {
	if f := l.find(id); f != nil {
		f.cancel()
		<-f.finished
		l.forget(id, f)
	}
	if err := os.Remove(l.position(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.log.Warn("failed to remove log position", "container", id, "err", err)
	}
}

// Known lists the containers that positions are saved of.
func (l *Logs) Known() ([]string, error) {
	files, err := os.ReadDir(l.dir)
	if err != nil {
		return nil, fmt.Errorf("list log positions: %w", err)
	}
	var ids []string
	for _, file := range files {
		ids = append(ids, file.Name())
	}
	return ids, nil
}

func (l *Logs) find(id string) *following {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.followers[id]
}

func (l *Logs) forget(id string, f *following) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.cancel()
	if l.followers[id] == f {
		delete(l.followers, id)
		delete(l.sources, f.source)
		_ = l.watcher.Remove(f.source) // it is gone if the file is
	}
}

// done says that the whole log is converted.
func (l *Logs) done(id string) bool {
	at, ok, err := readPosition(l.position(id))
	return ok && err == nil && at.Done
}

func (l *Logs) position(id string) string { return filepath.Join(l.dir, id) }
