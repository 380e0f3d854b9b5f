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

// fileState is what is known of one manifest.
type fileState struct {
	identity identity
	entry    identity // of the file that had data first, or of the link to it
	data     []byte
	good     *manifest // the last that could be used, nil for none yet
	bad      error     // why the present content cannot be
}

// identity changes whenever content does, short of a clock that stands still.
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

// rootKey is where problems with the path itself are kept, beside those of files.
const rootKey = ""

// scan brings f.files up to date. Files are read again if something was noticed, else
// only if they look different.
func (f *File) scan(noticed bool) {
	paths, err := f.list()
	if err != nil {
		// Nothing is known of the files now, so all stays as it is.
		f.report(f.state(rootKey), f.cfg.Path, fmt.Errorf("read manifests: %w", err))
		return
	}
	f.report(f.state(rootKey), f.cfg.Path, nil)
	for path := range f.files {
		if path != rootKey && !slices.Contains(paths, path) {
			f.deps.Log.Info("manifest is gone", "path", path)
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

// list names the manifests, in order. That there is no such path is not an error: nothing
// is wanted then.
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

// read takes in one file, if it changed.
func (f *File) read(path string, noticed bool) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		delete(f.files, path) // just removed, or a link to nothing
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
	f.take(s, path)
}

// take makes pods of a file's new content.
func (f *File) take(s *fileState, path string) {
	m, err := decode(s.data)
	if err == nil {
		origin := pod.Origin{Source: pod.SourceFile, Location: path, NodeName: f.cfg.NodeName}
		err = prepare(&m, origin, f.deps.Objects != nil)
	}
	f.report(s, path, err)
	if err != nil {
		return
	}
	for _, warning := range m.warnings {
		f.deps.Log.Warn("manifest has a field that is not known", "path", path, "field", warning)
	}
	s.good = &m
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

// report passes on a problem the first time it is seen, and its end.
func (f *File) report(s *fileState, path string, err error) {
	before := s.bad
	s.bad = err
	switch {
	case err == nil && before != nil:
		f.deps.Log.Info("manifest is good again", "path", path)
	case err != nil && (before == nil || before.Error() != err.Error()):
		f.complain(path, err)
	}
}

func (f *File) complain(path string, err error) {
	f.deps.Log.Error("manifest cannot be used; its last good pods stay", "path", path, "err", err)
	if f.deps.BadFile != nil {
		f.deps.BadFile(path, err)
	}
}
