package server

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
)

// systemLogs serves the files of the system's log directory.
func (s *Server) systemLogs() http.Handler {
	return http.StripPrefix("/logs/", http.FileServerFS(logTree{s.cfg.SystemLogDir}))
}

// logTree is a directory whose links are followed as long as they stay in it. Pods that
// mount it can make links there; those that lead out are not theirs to read through us.
type logTree struct{ dir string }

func (t logTree) Open(name string) (fs.File, error) {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.Open(name)
	if err == nil || os.IsNotExist(err) {
		return file, err
	}
	// A link with an absolute target may still lead to a place below. The kernel has the
	// last word on that: the path found is opened as one without links.
	whole, err := filepath.EvalSymlinks(t.dir)
	if err != nil {
		return nil, err
	}
	target, err := filepath.EvalSymlinks(filepath.Join(whole, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	below, err := filepath.Rel(whole, target)
	if err != nil {
		return nil, err
	}
	return root.Open(below)
}
