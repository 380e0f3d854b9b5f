package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Replace is Write for a file in a given format, without a checksum. The file has the given mode,
// regardless of the umask and of the mode of the file that it replaces.
//
// It calls fsync twice, which takes milliseconds: use it for state that must survive a crash of
// the machine, not for what can be derived again from the API server, the runtime or the mount
// table.
func Replace(path string, content []byte, mode fs.FileMode) error {
	if err := replace(disk{}, path, content, mode); err != nil {
		return fmt.Errorf("replace %s: %w", path, err) // the causes name a temporary file
	}
	return nil
}

// Files lists the file at path, if it exists, and the temporary files that interrupted writes of
// it have left. To empty the directory, remove all of them.
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

// temporary is the prefix of the temporary files of a file. The leading dot makes code that lists
// the directory skip a file that a crash has left.
func temporary(name string) string { return "." + name + "." }

// steps are the operations of a write that can fail or be interrupted by a crash.
type steps interface {
	write(f *os.File, content []byte) error
	sync(f *os.File) error
	rename(from, to string) error
}

// replace writes a temporary file in the same directory and renames it to path. It syncs the
// content before the rename: otherwise the rename may reach the disk first, and a crash leaves an
// empty or zero-filled file at path.
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

// SyncDir makes renames and removals in dir durable that were not made by this package.
func SyncDir(dir string) error { return syncDir(disk{}, dir) }

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

// disk performs the steps on the file system.
type disk struct{}

func (disk) write(f *os.File, content []byte) error {
	_, err := f.Write(content)
	return err
}

func (disk) sync(f *os.File) error { return f.Sync() }

func (disk) rename(from, to string) error { return os.Rename(from, to) }
