package restoration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked means that a process uses the store.
var ErrLocked = errors.New("another process uses the store")

// Dirs are the directories of a node. They need not exist.
type Dirs struct {
	Data string // of the API server
	PKI  string // of certificates and keys
	// step is called before each change on the disk, for tests.
	step func(string)
}

const (
	lockName = "lock"
	// storeName is the store's directory in Data.
	storeName = "etcd"
	// stagingName has a restored store that is not complete. Once it is, it is called decidedName.
	stagingName, decidedName = "restoring", "restored"
	// previousName is the replaced store, in the directory decidedName.
	previousName = "previous"
	// stagedKeys is the directory of the restored keys in PKI.
	stagedKeys = ".restoring"
)

// leftovers are patterns of what earlier programs leave in Data and PKI when they are killed.
var leftovers = []struct {
	dir     func(Dirs) string
	pattern string
}{
	{func(d Dirs) string { return d.Data }, "restoring-*"},
	{func(d Dirs) string { return d.PKI }, ".new-*"},
}

// Lock is held by the one process that uses the store. The kernel releases it when the process ends.
type Lock struct {
	dirs Dirs
	file *os.File
}

// Open takes the lock. It completes a restore that was decided, and removes what is left of others. The error is
// ErrLocked while another process has the lock.
func Open(d Dirs) (*Lock, error) {
	if err := os.MkdirAll(d.Data, 0o700); err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(d.Data, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock store %s: %w", d.Data, err)
	}
	l := &Lock{dirs: d, file: f}
	if err := l.finishInterrupted(); err != nil {
		f.Close()
		return nil, fmt.Errorf("complete an interrupted restore: %w", err)
	}
	return l, nil
}

const (
	// awaitLimit is longer than the kernel takes to end a process that it has killed.
	awaitLimit = 10 * time.Second
	awaitRetry = 50 * time.Millisecond
)

// Await is Open, after the end of a process that has the lock, such as one that is being killed.
func Await(ctx context.Context, d Dirs) (*Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	for {
		lock, err := Open(d)
		if !errors.Is(err, ErrLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(awaitRetry):
		}
	}
}

// Close releases the lock.
func (l *Lock) Close() error { return l.file.Close() }

func (d Dirs) data(name ...string) string { return filepath.Join(append([]string{d.Data}, name...)...) }

func (d Dirs) keys(name ...string) string { return filepath.Join(append([]string{d.PKI}, name...)...) }

// before marks a step.
func (d Dirs) before(step string) {
	if d.step != nil {
		d.step(step)
	}
}

// finishInterrupted completes what was decided and removes the rest.
func (l *Lock) finishInterrupted() error {
	if exists(l.dirs.data(decidedName)) {
		if err := l.complete(); err != nil {
			return err
		}
	}
	return l.discard()
}

// discard removes what no decided restore needs.
func (l *Lock) discard() error {
	paths := []string{l.dirs.data(stagingName), l.dirs.keys(stagedKeys)}
	for _, left := range leftovers {
		found, err := filepath.Glob(filepath.Join(left.dir(l.dirs), left.pattern))
		if err != nil {
			return err
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		if !exists(path) {
			continue
		}
		l.dirs.before("remove " + filepath.Base(path))
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
