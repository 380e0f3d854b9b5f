package certificate

import (
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Reloaded is a value loaded from files and reloaded when they change. Current compares the
// files' status on every call: that costs a stat per file and, unlike a watch, nothing while no
// connection is made. A change that cannot be loaded leaves the previous value in use.
type Reloaded[T any] struct {
	log   *slog.Logger
	files []string
	load  func() (*T, error)

	mu       sync.Mutex
	value    *T
	versions []fileVersion // of the files that value was loaded from
	failed   []fileVersion // of the files that last failed to load, to log the failure once
}

// fileVersion changes when a file is written or replaced.
type fileVersion struct {
	modified time.Time
	size     int64
	inode    uint64
}

// versionOf returns the zero fileVersion where the file cannot be read.
func versionOf(file string) fileVersion {
	info, err := os.Stat(file)
	if err != nil {
		return fileVersion{}
	}
	v := fileVersion{modified: info.ModTime(), size: info.Size()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		v.inode = sys.Ino
	}
	return v
}

// Load loads the value from the files. It returns an error of the first load; those of later
// reloads are logged.
func Load[T any](log *slog.Logger, load func() (*T, error), files ...string) (*Reloaded[T], error) {
	r := &Reloaded[T]{log: log, files: files, load: load}
	return r, r.reload(r.currentVersions())
}

// Current returns the value that was last loaded successfully.
func (r *Reloaded[T]) Current() *T {
	r.mu.Lock()
	defer r.mu.Unlock()
	versions := r.currentVersions()
	if slices.Equal(versions, r.versions) {
		return r.value
	}
	if err := r.reload(versions); err != nil && !slices.Equal(versions, r.failed) {
		r.failed = versions
		r.log.Warn("failed to reload changed files, using their previous content", "files", r.files, "err", err)
	}
	return r.value
}

func (r *Reloaded[T]) currentVersions() []fileVersion {
	versions := make([]fileVersion, len(r.files))
	for i, file := range r.files {
		versions[i] = versionOf(file)
	}
	return versions
}

func (r *Reloaded[T]) reload(versions []fileVersion) error {
	value, err := r.load()
	if err != nil {
		return err
	}
	r.value, r.versions = value, versions
	return nil
}
