package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"swiftlet/apiserver/internal/etcd"
	"swiftlet/internal/restoration"
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

func (c Config) save(ctx context.Context, now time.Time) (err error) {
	if _, err := os.Lstat(c.File); err == nil {
		return errors.New("the file exists, and is not replaced")
	}
	if _, err := os.Stat(c.Data); err != nil {
		return fmt.Errorf("find the store of `swiftlet up --api`: %w", err)
	}
	alone, err := c.oneBackup()
	if err != nil {
		return err
	}
	defer alone.Close()
	work, err := os.MkdirTemp(filepath.Dir(c.File), c.workPrefix()+"*") // only its owner may read it
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	snapshot := filepath.Join(work, snapshotName)
	held, err := c.snapshot(ctx, snapshot)
	if err != nil {
		return err
	}
	defer held.Close() // once the keys are read
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

// backupLockName is a file in the directory of the data that is locked while a backup is written.
const backupLockName = "backup.lock"

// oneBackup returns when no other backup of the node is written, until it is closed. It removes what one that was
// killed has left beside the file.
func (c Config) oneBackup() (io.Closer, error) {
	f, err := os.OpenFile(filepath.Join(c.Data, backupLockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errors.New("another backup of the node is being written")
	}
	entries, readErr := os.ReadDir(filepath.Dir(c.File))
	err = errors.Join(err, readErr)
	for _, e := range entries {
		number, ours := strings.CutPrefix(e.Name(), c.workPrefix())
		if _, notNumber := strconv.ParseUint(number, 10, 64); err == nil && ours && notNumber == nil && e.IsDir() {
			err = os.RemoveAll(filepath.Join(filepath.Dir(c.File), e.Name()))
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// workPrefix is that of the directory in which a backup is prepared. A number follows.
func (c Config) workPrefix() string { return "." + filepath.Base(c.File) + "-" }

// snapshot takes the snapshot from the running API server, or from the store, which stays locked until held is closed.
func (c Config) snapshot(ctx context.Context, file string) (held io.Closer, err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	err = etcd.FetchSnapshot(ctx, c.Data, f)
	if err == nil {
		c.say("the API server runs and has written a snapshot")
		return io.NopCloser(nil), nil // it has the lock
	}
	if !errors.Is(err, etcd.ErrNotServed) {
		return nil, err
	}
	lock, err := c.lock()
	if err != nil {
		return nil, err
	}
	if err := c.snapshotStore(ctx, f); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// snapshotStore opens the store of a stopped node.
func (c Config) snapshotStore(ctx context.Context, w io.Writer) error {
	if _, err := os.Stat(c.store()); err != nil {
		return fmt.Errorf("find the store of `swiftlet up --api`: %w", err)
	}
	c.say("no API server runs; opening its store")
	member, err := etcd.Start(ctx, c.store())
	if err != nil {
		return err
	}
	return errors.Join(member.WriteSnapshot(ctx, w), member.Close())
}

// lock returns the lock of the store, or an error if a process has it open, which may be one that knows no lock.
func (c Config) lock() (*restoration.Lock, error) {
	lock, err := restoration.Open(restoration.Dirs{Data: c.Data, PKI: c.PKI})
	if errors.Is(err, restoration.ErrLocked) {
		return nil, c.inUse()
	}
	if err != nil {
		return nil, err
	}
	used, err := etcd.InUse(c.store())
	if err != nil {
		err = fmt.Errorf("find out whether the store is in use: %w", err)
	} else if used {
		err = c.inUse()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func (c Config) inUse() error {
	return fmt.Errorf("a process uses the store %s, and serves no snapshots; try again, or stop the node with `swiftlet down`", c.store())
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
