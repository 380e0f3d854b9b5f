package logs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// openDir opens the folder of the log at path, and names the file in it. Whoever can write
// to the pod's folder, such as a pod that mounts it, can put links there; none is followed
// out of that folder.
func (r *Reader) openDir(path string) (dir *os.Root, name string, err error) {
	below, err := filepath.Rel(r.dir, path)
	if err != nil || !filepath.IsLocal(below) {
		return nil, "", fmt.Errorf("%s is not below %s", path, r.dir)
	}
	podDir, below, found := strings.Cut(below, string(filepath.Separator))
	if !found {
		return nil, "", fmt.Errorf("%s is in no pod's folder", path)
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

// openIn opens a log file for reading, and tells its size. What is there is not trusted to be a file: opening
// must not block, nor reading it.
func openIn(dir *os.Root, name string) (*os.File, int64, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", f.Name())
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
