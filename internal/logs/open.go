package logs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// openDir opens the directory of the log at path, and returns the name of the file in it. A pod
// that mounts its log directory can create symbolic links there; none is followed out of the
// pod's directory.
func (r *Reader) openDir(path string) (dir *os.Root, name string, err error) {
	below, err := filepath.Rel(r.dir, path)
	if err != nil || !filepath.IsLocal(below) {
		return nil, "", fmt.Errorf("%s is not below %s", path, r.dir)
	}
	podDir, below, found := strings.Cut(below, string(filepath.Separator))
	if !found {
		return nil, "", fmt.Errorf("%s is not in a pod's directory", path)
	}
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	pod, err := root.OpenRoot(podDir)
	if err != nil {
		return nil, "", err
	}
	defer pod.Close()
	dir, err = pod.OpenRoot(filepath.Dir(below))
	return dir, filepath.Base(below), err
}

// openIn opens a log file and returns its size. It rejects anything but a regular file, so that
// neither opening nor reading blocks.
func openIn(dir *os.Root, name string) (*os.File, int64, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", f.Name())
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
