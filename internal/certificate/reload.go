package certificate

import (
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Reloaded is a value made from files, made again when they have changed. It looks when it
// is asked, which costs a stat and, unlike a watch, nothing while nobody connects. A
// change that cannot be loaded leaves the old value in use.
type Reloaded[T any] struct {
	log   *slog.Logger
	files []string
	load  func() (*T, error)

	mu     sync.Mutex
	value  *T
	stamps []stamp // of the files that value was made from
	bad    []stamp // of the files that could not be loaded last, to complain of them once
}

// stamp changes when a file is written or replaced.
type stamp struct {
	modified time.Time
	size     int64
	inode    uint64
}

func stampOf(file string) stamp {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	s := stamp{modified: info.ModTime(), size: info.Size()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = sys.Ino
	}
	return s
}

// Load makes the value for the first time; later failures are only logged.
func Load[T any](log *slog.Logger, load func() (*T, error), files ...string) (*Reloaded[T], error) {
	r := &Reloaded[T]{log: log, files: files, load: load}
	return r, r.refresh(r.look())
}

// Current is the value that the files made when they last could.
func (r *Reloaded[T]) Current() *T {
	r.mu.Lock()
	defer r.mu.Unlock()
	stamps := r.look()
	if slices.Equal(stamps, r.stamps) {
		return r.value
	}
	if err := r.refresh(stamps); err != nil && !slices.Equal(stamps, r.bad) {
		r.bad = stamps
		r.log.Warn("changed files cannot be loaded; the old ones stay in use", "files", r.files, "err", err)
	}
	return r.value
}

func (r *Reloaded[T]) look() []stamp {
	stamps := make([]stamp, len(r.files))
	for i, file := range r.files {
		stamps[i] = stampOf(file)
	}
	return stamps
}

func (r *Reloaded[T]) refresh(stamps []stamp) error {
	value, err := r.load()
	if err != nil {
		return err
	}
	r.value, r.stamps = value, stamps
	return nil
}
