package standalone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"
)

const (
	// maxLogSize is the size at which a log is rotated. One older log is kept.
	maxLogSize = 10 << 20
	// logCheckPeriod is the shortest time between two checks of containerd's log.
	logCheckPeriod = time.Second
)

// RotatedLog is a log file of this process. It is renamed to path.1 before it exceeds 10 MiB.
type RotatedLog struct {
	path string
	max  int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// OpenLog opens a log for appending.
func OpenLog(path string) (*RotatedLog, error) {
	l := &RotatedLog{path: path, max: maxLogSize}
	return l, l.open()
}

func (l *RotatedLog) open() error {
	f, err := openAppend(l.path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return fmt.Errorf("open log: %w", err)
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write rotates the log if p does not fit. If that fails, the log grows: a log that is too long is better
// than none.
func (l *RotatedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(p)) > l.max {
		if err := os.Rename(l.path, l.path+".1"); err == nil {
			full := l.file
			if l.open() == nil {
				full.Close()
			}
		}
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

// Close closes the file.
func (l *RotatedLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

// OpenAgentLog opens the agent's log for appending.
func OpenAgentLog(p Paths) (*RotatedLog, error) {
	if err := makeLogDir(p); err != nil {
		return nil, err
	}
	return OpenLog(p.AgentLog())
}

// OpenErrorLog opens the log of failures of instances in the background, to append to it and to read it.
func OpenErrorLog(p Paths) (*os.File, error) {
	if err := makeLogDir(p); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(p.ErrorLog(), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return f, nil
}

// makeLogDir makes the directory of logs, unless others could link its files to any file of root.
func makeLogDir(p Paths) error {
	if err := checkOwner(p.root); err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(p.AgentLog()), 0o711); err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	return nil
}

func openAppend(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return f, nil
}

// limitLog keeps the log of another process below max bytes until ctx is done: it copies a larger one to path.1
// and truncates it. The process has it open for appending and survives this one, so it cannot be renamed, nor
// be a pipe to here. The kernel reports writes, so an idle process costs nothing, and one that writes all the
// time a check per second.
func limitLog(ctx context.Context, path string, max int64, clock clock.Clock, log *slog.Logger) {
	for watched := true; ctx.Err() == nil; {
		// The watch comes first, so that no write is missed.
		writes, err := watchWrites(path)
		if err != nil && watched { // pods may have used up all inotify instances
			log.Warn("limit log: watch failed, checking at intervals", "path", path, "interval", logCheckPeriod, "err", err)
		}
		watched = err == nil
		if err := truncateLog(path, max); err != nil {
			log.Warn("limit log: rotation failed", "path", path, "err", err)
		}
		if watched {
			awaitWrite(ctx, writes)
		}
		select {
		case <-ctx.Done():
		case <-clock.After(logCheckPeriod):
		}
	}
}

// truncateLog copies a log that is too large to path.1 and truncates it. What the process writes in between
// is lost.
func truncateLog(path string, max int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() <= max {
		return err
	}
	// Of a log that grew while no one limited it, the end matters.
	if _, err := f.Seek(info.Size()-max, io.SeekStart); err != nil {
		return err
	}
	older, err := os.OpenFile(path+".1", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(older, io.LimitReader(f, 2*max))
	return errors.Join(err, older.Close(), f.Truncate(0))
}

// watchWrites returns a file that can be read when path is written to. If there is no such file, it can be read
// when one is created in the directory.
func watchWrites(path string) (*os.File, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_MODIFY|unix.IN_ONESHOT)
	if errors.Is(err, unix.ENOENT) {
		_, err = unix.InotifyAddWatch(fd, filepath.Dir(path), unix.IN_CREATE|unix.IN_ONESHOT)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "inotify"), nil
}

// awaitWrite waits until there is something to read, or ctx is done. It closes the file.
func awaitWrite(ctx context.Context, writes *os.File) {
	defer writes.Close()
	defer context.AfterFunc(ctx, func() { _ = writes.SetReadDeadline(time.Unix(1, 0)) })()
	var event [4096]byte
	_, _ = writes.Read(event[:]) // after a failure the log is checked as well
}
