package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"swiftlet/apiserver/internal/etcd"
	"swiftlet/apiserver/internal/pki"
)

// Restore replaces the store and keys of a stopped node by those of a backup. The present ones stay in place
// until the backup has been restored beside them and opened.
func Restore(ctx context.Context, c Config) error {
	if err := c.restore(ctx); err != nil {
		return fmt.Errorf("restore %s: %w", c.File, err)
	}
	return nil
}

func (c Config) restore(ctx context.Context) error {
	if err := c.refuseInUse(); err != nil {
		return err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, dir := range []string{c.Data, c.PKI} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp(c.Data, "restoring-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) // in the end it has the previous store
	m, err := unpack(f, work, c.Kubernetes)
	if err != nil {
		return err
	}
	if err := m.complete(); err != nil {
		return err
	}
	c.say("%s is complete: %d objects at revision %d, saved %s by Kubernetes %s", c.File, m.Keys, m.Revision, m.Created.Format(time.RFC3339), m.Kubernetes)
	restored := filepath.Join(work, "etcd")
	revision, err := etcd.Restore(ctx, filepath.Join(work, snapshotName), restored)
	if err != nil {
		return err
	}
	c.say("the store is restored and opens, at revision %d", revision)
	if err := c.swap(restored, work); err != nil {
		return err
	}
	c.say("it has replaced the previous store and keys; `swiftlet up --api` starts the node with it")
	return nil
}

// complete returns an error if an entry is missing.
func (m manifest) complete() error {
	found := map[string]bool{}
	for _, e := range m.Entries {
		found[e.Name] = true
	}
	for _, name := range append([]string{snapshotName}, keys...) {
		if !found[name] {
			return fmt.Errorf("%w: %s is missing", errDamaged, name)
		}
	}
	return nil
}

// swap puts the restored store, and the keys in the directory work, in place of the present ones.
func (c Config) swap(restored, work string) error {
	previous, err := pki.Replace(c.PKI, work, keys)
	if err == nil {
		err = exchange(restored, c.store())
	}
	if err == nil {
		return syncDir(c.Data)
	}
	return errors.Join(err, previous.PutBack())
}

// exchange swaps two directories in one step, so that there is a store at any time.
func exchange(from, to string) error {
	if _, err := os.Stat(to); errors.Is(err, os.ErrNotExist) {
		return os.Rename(from, to)
	}
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
}
