package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceLink makes path a symbolic link to target. At any time path is the old link or the new one, and
// the new one survives a crash of the machine when ReplaceLink returns nil. It does not replace anything
// but a link.
func ReplaceLink(path, target string) error { return replaceLink(disk{}, path, target) }

func replaceLink(do steps, path, target string) error {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSymlink {
		return fmt.Errorf("replace link %s: it is no symbolic link", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(path)
	link := filepath.Join(dir, temporary(filepath.Base(path))+"link")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an interrupted call
		return err
	}
	if err := os.Symlink(target, link); err != nil {
		return err
	}
	if err := do.rename(link, path); err != nil {
		return errors.Join(err, os.Remove(link))
	}
	return syncDir(do, dir)
}
