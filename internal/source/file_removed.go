package source

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// removed lists the known manifests that were removed according to events, even if only for a moment. A
// manifest that exists again is another file, even with the same content. content is the directory that
// was watched.
func (f *File) removed(events []fsnotify.Event, content string) []string {
	removed := removedPaths(events)
	var gone []string
	for path, s := range f.files {
		if !removed[path] && !removed[filepath.Join(content, filepath.Base(path))] {
			continue
		}
		// If it is the file that was read last, the events are older than the read.
		if info, err := os.Lstat(path); err != nil || identify(info) != s.entry {
			gone = append(gone, path)
		}
	}
	slices.Sort(gone)
	return gone
}

// removedPaths returns the paths that did not exist for at least a moment. A file that is replaced by a
// rename is not removed. Neither is one that an editor renames in the directory, as a backup, before it
// writes a new one.
func removedPaths(events []fsnotify.Event) map[string]bool {
	gone := map[string]bool{}
	renamed := map[string]string{} // new paths of files, "" for outside the directory
	for _, e := range events {
		switch from := renamedFrom(e); {
		case e.Has(fsnotify.Remove):
			gone[e.Name] = true
		case e.Has(fsnotify.Rename):
			renamed[e.Name] = ""
		case e.Has(fsnotify.Create) && from != "":
			if renamed[e.Name] == from {
				gone[e.Name] = true // it is renamed back
			}
			if _, known := renamed[from]; known && filepath.Dir(from) == filepath.Dir(e.Name) {
				renamed[from] = e.Name
			}
		}
	}
	for path, to := range renamed {
		if to == "" {
			gone[path] = true
		}
	}
	return gone
}

// renamedFrom returns the old path of a file that was renamed in the watched directories. The library has
// it only in the text of the event.
func renamedFrom(e fsnotify.Event) string {
	_, quoted, _ := strings.Cut(e.String(), " ← ")
	from, _ := strconv.Unquote(quoted)
	return from
}

// withdraw sends a snapshot without the pods of these manifests, which are then read as new files. It
// keeps the ConfigMaps and Secrets of a manifest that exists again: pods may use them.
func (f *File) withdraw(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	for _, path := range paths {
		f.deps.Log.Info("file source: manifest removed", "path", path)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			delete(f.files, path)
			continue
		}
		s := f.files[path]
		s.data = nil
		if s.valid != nil {
			s.valid = &manifest{configMaps: s.valid.configMaps, secrets: s.valid.secrets}
		}
	}
	return f.send(ctx)
}
