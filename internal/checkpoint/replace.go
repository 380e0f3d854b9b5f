package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Replace is Write for a file whose format is not ours to choose: it has no checksum. The
// file has the given mode, whatever the umask and the mode of the file it replaces.
//
// It waits for the disk twice, which takes milliseconds: it is for state that must survive a
// crash of the machine. What can be made again from the API server, the runtime or the mount
// table is written without.
func Replace(path string, content []byte, mode fs.FileMode) error {
	return replace(disk{}, path, content, mode)
}

// Files lists the file at path, if there is one, and what writes of it that a crash cut short
// left beside it. All of them are to be removed with a directory that is to be empty.
func Files(path string) ([]string, error) {
	dir, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list files of %s: %w", path, err)
	}
	var found []string
	for _, e := range entries {
		if e.Name() == name || strings.HasPrefix(e.Name(), temporary(name)) {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	return found, nil
}

// temporary begins the names that a file has until it is whole. The dot is there so that code
// which lists the directory passes over a file that a crash left behind.
func temporary(name string) string { return "." + name + "." }

// steps are those of a write that can fail, or be the last before a crash.
type steps interface {
	write(f *os.File, content []byte) error
	sync(f *os.File) error
	rename(from, to string) error
}

// replace writes a temporary file beside path and renames it. The content is on the disk
// before the rename: the rename may reach the disk first otherwise, and a crash would leave
// an empty file, or one full of zeros, under the name.
func replace(do steps, path string, content []byte, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, temporary(filepath.Base(path))+"*")
	if err != nil {
		return err
	}
	err = do.write(f, content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = do.sync(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = do.rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(do, dir)
}

// syncDir makes a rename or removal in dir durable.
func syncDir(do steps, dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer d.Close()
	if err := do.sync(d); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// disk takes the steps for real.
type disk struct{}

func (disk) write(f *os.File, content []byte) error {
	_, err := f.Write(content)
	return err
}

func (disk) sync(f *os.File) error { return f.Sync() }

func (disk) rename(from, to string) error { return os.Rename(from, to) }
