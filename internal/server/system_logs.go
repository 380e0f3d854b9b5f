package server

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// systemLogs serves the files of the system's log directory and, where that is switched
// on, answers queries for the logs of its services.
func (s *Server) systemLogs() http.Handler {
	files := http.StripPrefix("/logs/", http.FileServerFS(s.logTree()))
	if !*s.cfg.Kubelet.EnableSystemLogQuery {
		return files
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, wrong := parseNodeLogQuery(r.URL.Query())
		switch {
		case len(wrong) > 0:
			http.Error(w, wrong.ToAggregate().Error(), http.StatusBadRequest)
			return
		case q == nil:
			files.ServeHTTP(w, r)
			return
		case r.URL.Path != "/logs/":
			http.Error(w, "path not allowed in query mode", http.StatusNotAcceptable)
			return
		}
		if wrong := q.check(s.logTree()); len(wrong) > 0 {
			http.Error(w, wrong.ToAggregate().Error(), http.StatusNotAcceptable)
			return
		}
		if len(q.services) > 0 {
			s.serviceLogs(w, r, q)
			return
		}
		http.ServeFileFS(w, r, s.logTree(), q.file())
	})
}

func (s *Server) logTree() logTree { return logTree{s.cfg.SystemLogDir} }

// logTree is a directory whose links are followed as long as they stay in it. Pods that
// mount it can make links there; those that lead out are not theirs to read through us.
type logTree struct{ dir string }

// Open opens a file or a directory, and nothing else: a pipe would have us wait for a
// writer, and a device might do anything.
func (t logTree) Open(name string) (fs.File, error) {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := openNow(root, name)
	if err == nil || os.IsNotExist(err) {
		return file, err
	}
	// A link with an absolute target may still lead to a place below. The kernel has the
	// last word on that: the path found is opened as one without links.
	if below, ok := t.resolve(name); ok {
		if file, again := openNow(root, below); again == nil {
			return file, nil
		}
	}
	return nil, err // the first, which does not tell where a link leads
}

// resolve follows links anywhere and returns what the path leads to, seen from the top.
func (t logTree) resolve(name string) (below string, ok bool) {
	top, err := filepath.EvalSymlinks(t.dir)
	if err != nil {
		return "", false
	}
	target, err := filepath.EvalSymlinks(filepath.Join(top, filepath.FromSlash(name)))
	if err != nil {
		return "", false
	}
	below, err = filepath.Rel(top, target)
	return below, err == nil
}

func openNow(root *os.Root, name string) (fs.File, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errNoFile}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

var errNoFile = errors.New("neither a file nor a directory")

// has says why a file cannot be read.
func (t logTree) has(name string) error {
	file, err := t.Open(name)
	if err != nil {
		return err
	}
	return file.Close()
}
