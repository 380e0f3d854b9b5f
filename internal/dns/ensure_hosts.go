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

// EnsureHosts makes the file at path say what Hosts says, readable by every container.
// A new file appears whole; an existing one is rewritten in place, because running
// containers hold a bind mount of that very file. They can write it, so no more of it is
// read than is to be there, and what is no regular file is replaced.
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
		err = createWhole(path, want)
	}
	if err != nil {
		return fmt.Errorf("write hosts file: %w", err)
	}
	return nil
}

// rewrite makes the regular file at path hold content. It is not synced to the disk: every
// start of a container compares and, if need be, writes it again.
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
	if !holds(f, info.Size(), content) {
		// Before the write, which may need the room on the disk.
		if err := f.Truncate(0); err != nil {
			return err
		}
		if _, err := f.WriteAt(content, 0); err != nil {
			return err
		}
	}
	return f.Chmod(0o644) // a container may have changed it
}

// holds reports whether f, of the given size, holds just this content.
func holds(f io.ReaderAt, size int64, content []byte) bool {
	if size != int64(len(content)) {
		return false
	}
	have := make([]byte, len(content))
	_, err := f.ReadAt(have, 0)
	return (err == nil || errors.Is(err, io.EOF)) && bytes.Equal(have, content)
}

// createWhole puts a new file in the place of whatever is at path, except a directory.
func createWhole(path string, content []byte) error {
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
