package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"swiftlet/internal/pod"
)

// fileState is the state of one manifest.
type fileState struct {
	identity identity
	entry    identity // of the file from which data was first read, or of the symlink to it
	data     []byte
	valid    *manifest // the last valid content, nil if there was none
	err      error     // why the current content is invalid
}

// identity changes with the content of a file, unless the clock does not advance.
type identity struct {
	dev, ino uint64
	size     int64
	ctime    syscall.Timespec
}

func identify(info fs.FileInfo) identity {
	id := identity{size: info.Size()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		id.dev, id.ino, id.ctime = s.Dev, s.Ino, s.Ctim
	}
	return id
}

// rootKey is the key of the state of the path itself.
const rootKey = ""

// scan updates f.files. After an inotify event it reads all files, otherwise only those whose identity has
// changed.
func (f *File) scan(noticed bool) {
	paths, err := f.list()
	if err != nil {
		// The files are unknown, so keep the last state.
		f.report(f.state(rootKey), f.cfg.Path, fmt.Errorf("read manifests: %w", err))
		return
	}
	f.report(f.state(rootKey), f.cfg.Path, nil)
	for path := range f.files {
		if path != rootKey && !slices.Contains(paths, path) {
			f.deps.Log.Info("file source: manifest removed", "path", path)
			delete(f.files, path)
		}
	}
	for _, path := range paths {
		f.read(path, noticed)
	}
}

func (f *File) state(path string) *fileState {
	if f.files[path] == nil {
		f.files[path] = &fileState{}
	}
	return f.files[path]
}

// list returns the paths of the manifests, sorted. A path that does not exist is no error: there are no
// manifests.
func (f *File) list() ([]string, error) {
	info, err := os.Stat(f.cfg.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{f.cfg.Path}, nil
	}
	entries, err := os.ReadDir(f.cfg.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, entry := range entries {
		if f.isManifest(entry.Name()) {
			paths = append(paths, filepath.Join(f.cfg.Path, entry.Name()))
		}
	}
	return paths, nil
}

func (f *File) isManifest(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	return len(f.cfg.Extensions) == 0 || slices.Contains(f.cfg.Extensions, filepath.Ext(name))
}

// read reads one file if it has changed.
func (f *File) read(path string, noticed bool) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		delete(f.files, path) // just removed, or a dangling symlink
		return
	}
	if err == nil && info.IsDir() {
		return
	}
	s := f.state(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("is no regular file but %s", info.Mode().Type())
	}
	if err != nil {
		f.report(s, path, err)
		return
	}
	id := identify(info)
	if !noticed && id == s.identity {
		return
	}
	data, err := readFile(path)
	if err != nil {
		f.report(s, path, err)
		return
	}
	s.identity = id
	if s.data != nil && bytes.Equal(data, s.data) {
		return
	}
	s.data = data
	if entry, err := os.Lstat(path); err == nil {
		s.entry = identify(entry)
	}
	f.parse(s, path)
}

// parse parses the new content of a file.
func (f *File) parse(s *fileState, path string) {
	m, err := decode(s.data)
	if err == nil {
		origin := pod.Origin{Source: pod.SourceFile, Location: path, NodeName: f.cfg.NodeName}
		err = prepare(&m, origin, f.deps.Objects != nil, f.adopter.runs)
	}
	f.report(s, path, err)
	if err != nil {
		return
	}
	for _, warning := range m.warnings {
		f.deps.Log.Warn("file source: unknown field in manifest", "path", path, "field", warning)
	}
	s.valid = &m
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err == nil && len(data) > maxManifest {
		err = fmt.Errorf("is larger than %d bytes", maxManifest)
	}
	return data, err
}

// report logs an error when it first occurs, and when it is resolved.
func (f *File) report(s *fileState, path string, err error) {
	before := s.err
	s.err = err
	switch {
	case err == nil && before != nil:
		f.deps.Log.Info("file source: manifest is valid again", "path", path)
	case err != nil && (before == nil || before.Error() != err.Error()):
		f.reportError(path, err)
	}
}

func (f *File) reportError(path string, err error) {
	f.deps.Log.Error("file source: invalid manifest, keeping its last valid pods", "path", path, "err", err)
	if f.deps.OnError != nil {
		f.deps.OnError(path, err)
	}
}
