package server

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// systemLogs serves the files of the system's log directory and, with enableSystemLogQuery, the
// logs of services.
func (s *Server) systemLogs() http.Handler {
	files := http.StripPrefix("/logs/", http.FileServerFS(s.logDir()))
	if !*s.cfg.Kubelet.EnableSystemLogQuery {
		return files
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, errs := parseNodeLogQuery(r.URL.Query())
		switch {
		case len(errs) > 0:
			http.Error(w, errs.ToAggregate().Error(), http.StatusBadRequest)
			return
		case q == nil:
			files.ServeHTTP(w, r)
			return
		case r.URL.Path != "/logs/":
			http.Error(w, "path not allowed in query mode", http.StatusNotAcceptable)
			return
		}
		if errs := q.validate(s.logDir()); len(errs) > 0 {
			http.Error(w, errs.ToAggregate().Error(), http.StatusNotAcceptable)
			return
		}
		if len(q.services) > 0 {
			s.serviceLogs(w, r, q)
			return
		}
		http.ServeFileFS(w, r, s.logDir(), q.file())
	})
}

func (s *Server) logDir() logDir { return logDir{s.cfg.SystemLogDir} }

// logDir is a directory whose symlinks are followed only within it. Pods that mount the
// directory can create symlinks, which must not expose other files of the host.
type logDir struct{ path string }

// Open opens a regular file or a directory. Others are refused: opening a pipe may block, and
// opening a device may have side effects.
func (d logDir) Open(name string) (fs.File, error) {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := openNonblock(root, name)
	if err == nil || os.IsNotExist(err) {
		return file, err
	}
	// os.Root refuses absolute symlinks, but the target may be within the directory. Opening
	// the resolved path through root again guards against a symlink that changes meanwhile.
	if relative, ok := d.resolve(name); ok {
		if file, retryErr := openNonblock(root, relative); retryErr == nil {
			return file, nil
		}
	}
	return nil, err // the first error, which does not reveal the symlink's target
}

// resolve follows all symlinks and returns the target relative to the directory.
func (d logDir) resolve(name string) (relative string, ok bool) {
	top, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		return "", false
	}
	target, err := filepath.EvalSymlinks(filepath.Join(top, filepath.FromSlash(name)))
	if err != nil {
		return "", false
	}
	relative, err = filepath.Rel(top, target)
	return relative, err == nil
}

func openNonblock(root *os.Root, name string) (fs.File, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

var errNotRegular = errors.New("neither a file nor a directory")

// readable returns an error if the file cannot be opened.
func (d logDir) readable(name string) error {
	file, err := d.Open(name)
	if err != nil {
		return err
	}
	return file.Close()
}
