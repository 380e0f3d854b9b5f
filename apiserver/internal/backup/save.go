package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"swiftlet/apiserver/internal/etcd"
)

// Config says what is saved or restored.
type Config struct {
	File       string
	Data       string // directory of the API server's data
	PKI        string // directory of certificates and keys
	Kubernetes string // version of this program
	Progress   io.Writer
}

// keys are the files of the PKI that cannot be issued again. Without them, kubeconfigs and tokens that others
// have are invalid.
var keys = []string{"ca.crt", "ca.key", "sa.key"}

func (c Config) store() string { return filepath.Join(c.Data, "etcd") }

func (c Config) say(format string, args ...any) { fmt.Fprintf(c.Progress, format+"\n", args...) }

// Save writes a backup of a node that runs or is stopped. It does not replace a file.
func Save(ctx context.Context, c Config, now time.Time) error {
	if err := c.save(ctx, now); err != nil {
		return fmt.Errorf("write backup %s: %w", c.File, err)
	}
	return nil
}

func (c Config) save(ctx context.Context, now time.Time) error {
	if _, err := os.Lstat(c.File); err == nil {
		return errors.New("the file exists, and is not replaced")
	}
	if _, err := os.Stat(c.store()); err != nil {
		return fmt.Errorf("find the store of `swiftlet up --api`: %w", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(c.File), "."+filepath.Base(c.File)+"-*") // only its owner may read it
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	snapshot := filepath.Join(work, snapshotName)
	if err := c.snapshot(ctx, snapshot); err != nil {
		return err
	}
	contents, err := etcd.CheckSnapshot(snapshot)
	if err != nil {
		return err
	}
	files := []source{}
	for _, name := range keys {
		files = append(files, source{name, filepath.Join(c.PKI, name)})
	}
	files = append(files, source{snapshotName, snapshot})
	packed := filepath.Join(work, "packed")
	size, err := packTo(packed, manifest{Format: format, Kubernetes: c.Kubernetes, Created: now.UTC().Truncate(time.Second), Contents: contents}, files)
	if err != nil {
		return err
	}
	if err := moveNew(packed, c.File); err != nil {
		return err
	}
	c.say("wrote %s: %s with %d objects at revision %d, the certificate authority and the key of service accounts", c.File, megabytes(size), contents.Keys, contents.Revision)
	c.say("whoever can read it can administer the node")
	return nil
}

// snapshot takes the snapshot from the running API server, or from the store.
func (c Config) snapshot(ctx context.Context, file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	err = etcd.FetchSnapshot(ctx, c.Data, f)
	if err == nil {
		c.say("the API server runs and has written a snapshot")
		return f.Close()
	}
	if !errors.Is(err, etcd.ErrNotServed) {
		return err
	}
	if err := c.refuseInUse(); err != nil {
		return err
	}
	c.say("no API server runs; opening its store")
	member, err := etcd.Start(ctx, c.store())
	if err != nil {
		return err
	}
	err = errors.Join(member.WriteSnapshot(ctx, f), member.Close())
	return errors.Join(err, f.Close())
}

// refuseInUse returns an error if a process has the store open.
func (c Config) refuseInUse() error {
	used, err := etcd.InUse(c.store())
	if err != nil {
		return fmt.Errorf("find out whether the store is in use: %w", err)
	}
	if used {
		return fmt.Errorf("a process uses the store %s, and serves no snapshots; try again, or stop the node with `swiftlet down`", c.store())
	}
	return nil
}

// packTo returns when the archive is on disk.
func packTo(file string, m manifest, files []source) (size int64, err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := pack(f, m, files); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), f.Close()
}

// moveNew renames a file and never replaces another.
func moveNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a file system without it
		err = os.Link(from, to)
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func megabytes(size int64) string { return fmt.Sprintf("%.1f MB", float64(size)/1e6) }
