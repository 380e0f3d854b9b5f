package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"swiftlet/apiserver/internal/etcd"
	"swiftlet/internal/restoration"
)

// Restore replaces the store and keys of a stopped node by those of a backup. The present ones stay in place
// until the backup has been restored beside them and opened.
func Restore(ctx context.Context, c Config) error {
	if err := c.restore(ctx); err != nil {
		return fmt.Errorf("restore %s: %w", c.File, err)
	}
	return nil
}

func (c Config) restore(ctx context.Context) (err error) {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	lock, err := c.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := os.MkdirAll(c.PKI, 0o700); err != nil {
		return err
	}
	work, err := lock.Stage()
	if err != nil {
		return err
	}
	if err := c.stage(ctx, f, work); err != nil {
		return errors.Join(err, lock.Discard())
	}
	if err := lock.Replace(keys); err != nil {
		return err
	}
	c.say("it has replaced the previous store and keys; `swiftlet up --api` starts the node with it")
	return nil
}

// stage restores the backup to the directory work.
func (c Config) stage(ctx context.Context, f io.Reader, work string) error {
	m, err := unpack(f, work, c.Kubernetes)
	if err != nil {
		return err
	}
	if err := m.complete(); err != nil {
		return err
	}
	c.say("%s is complete: %d objects at revision %d, saved %s by Kubernetes %s", c.File, m.Keys, m.Revision, m.Created.Format(time.RFC3339), m.Kubernetes)
	revision, err := etcd.Restore(ctx, filepath.Join(work, snapshotName), restoration.Store(work))
	if err != nil {
		return err
	}
	c.say("the store is restored and opens, at revision %d", revision)
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
