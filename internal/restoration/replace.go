package restoration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/checkpoint"
)

// Stage returns an empty directory for what is restored. It is removed by the next Open, unless Replace has
// decided for it.
func (l *Lock) Stage() (string, error) {
	if err := l.discard(); err != nil {
		return "", fmt.Errorf("stage restore: %w", err)
	}
	dir := l.dirs.data(stagingName)
	l.dirs.before("create " + stagingName)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("stage restore: %w", err)
	}
	return dir, nil
}

// Store is where the restored store belongs in the directory that Stage returns.
func Store(staging string) string { return filepath.Join(staging, storeName) }

// Discard removes what Stage returned.
func (l *Lock) Discard() error { return l.discard() }

// Replace puts the staged store, and the named keys beside it, in place of the present ones. If it fails before it is
// decided, nothing has changed; otherwise the next Open completes it.
func (l *Lock) Replace(keys []string) error {
	if err := l.stageKeys(keys); err != nil {
		return fmt.Errorf("stage keys: %w", err)
	}
	l.dirs.before("sync staged store")
	if err := syncTree(l.dirs.data(stagingName)); err != nil {
		return fmt.Errorf("stage store: %w", err)
	}
	l.dirs.before("decide")
	if err := l.rename(l.dirs.data(stagingName), l.dirs.data(decidedName)); err != nil {
		return fmt.Errorf("decide restore: %w", err)
	}
	if err := l.complete(); err != nil {
		return fmt.Errorf("the restore is decided, and completed at the next start: %w", err)
	}
	return l.discard()
}

// stageKeys copies the keys to the file system of those that they replace, so that a rename is enough.
func (l *Lock) stageKeys(keys []string) error {
	l.dirs.before("create " + stagedKeys)
	if err := os.MkdirAll(l.dirs.keys(stagedKeys), 0o700); err != nil {
		return err
	}
	for _, name := range keys {
		content, err := boundedio.ReadFile(l.dirs.data(stagingName, name), boundedio.Small)
		if err != nil {
			return err
		}
		l.dirs.before("stage " + name)
		if err := checkpoint.Replace(l.dirs.keys(stagedKeys, name), content, 0o600); err != nil {
			return err
		}
	}
	return checkpoint.SyncDir(l.dirs.PKI)
}

// complete does what is left of a decided restore. It may be repeated after each step.
func (l *Lock) complete() error {
	if err := l.moveKeys(); err != nil {
		return err
	}
	if restored := l.dirs.data(decidedName, storeName); exists(restored) {
		store, previous := l.dirs.data(storeName), l.dirs.data(decidedName, previousName)
		if exists(store) {
			l.dirs.before("move the previous store away")
			if err := errors.Join(os.RemoveAll(previous), l.rename(store, previous)); err != nil {
				return err
			}
		}
		l.dirs.before("move the restored store")
		if err := l.rename(restored, store); err != nil {
			return err
		}
	}
	l.dirs.before("end")
	return l.rename(l.dirs.data(decidedName), l.dirs.data(stagingName))
}

// moveKeys moves the staged keys that are not moved yet.
func (l *Lock) moveKeys() error {
	entries, err := os.ReadDir(l.dirs.keys(stagedKeys))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		l.dirs.before("move " + e.Name())
		if err := l.rename(l.dirs.keys(stagedKeys, e.Name()), l.dirs.keys(e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// rename returns when the names are on disk.
func (l *Lock) rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	err := checkpoint.SyncDir(filepath.Dir(to))
	if filepath.Dir(from) != filepath.Dir(to) {
		err = errors.Join(err, checkpoint.SyncDir(filepath.Dir(from)))
	}
	return err
}

// syncTree puts a tree of files on disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
