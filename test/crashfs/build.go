package crashfs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Build makes the directory that the disk has after a power loss at this moment.
func (f *FS) Build(dir string, loss Loss) error {
	f.mu.Lock()
	s := replay(f.root, f.log)
	f.mu.Unlock()
	return s.root.build(dir, loss)
}

// build makes the content of a directory that exists.
func (i *inode) build(dir string, loss Loss) error {
	for name, entry := range i.entriesAfter(loss) {
		if err := entry.make(filepath.Join(dir, name), loss); err != nil {
			return fmt.Errorf("build directory after power loss: %w", err)
		}
	}
	return nil
}

func (i *inode) make(path string, loss Loss) error {
	mode := fs.FileMode(i.mode & 0o777)
	switch {
	case i.entries != nil:
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		if err := i.build(path, loss); err != nil {
			return err
		}
		return os.Chmod(path, mode)
	case i.mode&syscall.S_IFMT == syscall.S_IFLNK:
		return os.Symlink(i.target, path)
	case i.mode&syscall.S_IFMT != syscall.S_IFREG:
		return syscall.Mknod(path, i.mode, 0) // a socket or a fifo
	}
	if err := os.WriteFile(path, i.after(loss), 0o600); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
