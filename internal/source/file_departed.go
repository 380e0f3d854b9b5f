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

// departed lists the known manifests that events show to have been gone, if only for a
// moment. One that is there again may have the content that it had: it is another file.
// content is the directory that was watched.
func (f *File) departed(events []fsnotify.Event, content string) []string {
	left := departures(events)
	var gone []string
	for path, s := range f.files {
		if !left[path] && !left[filepath.Join(content, filepath.Base(path))] {
			continue
		}
		// If the file is the one that was read last, the events are older than that.
		if info, err := os.Lstat(path); err != nil || identify(info) != s.entry {
			gone = append(gone, path)
		}
	}
	slices.Sort(gone)
	return gone
}

// departures are the paths at which, for a moment at least, nothing was. A file that is
// renamed over another takes its place without that. Neither is a file gone that an editor
// renames within the directory, as a backup, before it writes a new one.
func departures(events []fsnotify.Event) map[string]bool {
	gone := map[string]bool{}
	moved := map[string]string{} // where files have gone to, "" for out of the directory
	for _, e := range events {
		switch from := renamedFrom(e); {
		case e.Has(fsnotify.Remove):
			gone[e.Name] = true
		case e.Has(fsnotify.Rename):
			moved[e.Name] = ""
		case e.Has(fsnotify.Create) && from != "":
			if moved[e.Name] == from {
				gone[e.Name] = true // it comes back
			}
			if _, left := moved[from]; left && filepath.Dir(from) == filepath.Dir(e.Name) {
				moved[from] = e.Name
			}
		}
	}
	for path, to := range moved {
		if to == "" {
			gone[path] = true
		}
	}
	return gone
}

// renamedFrom is the former name of a file that was renamed within the watched directories.
// The library tells it only in the text of the event.
func renamedFrom(e fsnotify.Event) string {
	_, quoted, _ := strings.Cut(e.String(), " ← ")
	from, _ := strconv.Unquote(quoted)
	return from
}

// withdraw sends what is wanted without the pods of these manifests, and has them read as new
// ones. ConfigMaps and Secrets of a manifest that is there again stay: pods may use them.
func (f *File) withdraw(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	for _, path := range paths {
		f.deps.Log.Info("manifest was removed", "path", path)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			delete(f.files, path)
			continue
		}
		s := f.files[path]
		s.data = nil
		if s.good != nil {
			s.good = &manifest{configMaps: s.good.configMaps, secrets: s.good.secrets}
		}
	}
	return f.send(ctx)
}
