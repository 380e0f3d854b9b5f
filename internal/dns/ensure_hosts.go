package dns

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	v1 "k8s.io/api/core/v1"
)

// EnsureHosts writes the result of Hosts to path, readable by every container. It creates a new
// file atomically; it rewrites an existing one in place, because running containers have a bind
// mount of it. Containers can write to the file, so EnsureHosts reads no more than the expected
// size, and replaces anything that is not a regular file.
func (r *Resolver) EnsureHosts(path string, p *v1.Pod, ips []string) error {
	want, err := r.Hosts(p, ips)
	if err != nil {
		return fmt.Errorf("compose hosts file: %w", err)
	}
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode().IsRegular():
		err = rewrite(path, want)
	case err == nil || errors.Is(err, fs.ErrNotExist):
		err = createAtomically(path, want)
	}
	if err != nil {
		return fmt.Errorf("write hosts file: %w", err)
	}
	return nil
}

// rewrite writes content to the regular file at path. It does not sync: every start of a
// container compares and rewrites the file if necessary.
func rewrite(path string, content []byte) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	if !hasContent(f, info.Size(), content) {
		// Truncate first: the write may need the space.
		if err := f.Truncate(0); err != nil {
			return err
		}
		if _, err := f.WriteAt(content, 0); err != nil {
			return err
		}
	}
	return f.Chmod(0o644) // a container may have changed it
}

// hasContent reports whether f, of the given size, has exactly this content.
func hasContent(f io.ReaderAt, size int64, content []byte) bool {
	if size != int64(len(content)) {
		return false
	}
	actual := make([]byte, len(content))
	_, err := f.ReadAt(actual, 0)
	return (err == nil || errors.Is(err, io.EOF)) && bytes.Equal(actual, content)
}

// createAtomically creates a file at path. It replaces anything there but a directory.
func createAtomically(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".etc-hosts-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
