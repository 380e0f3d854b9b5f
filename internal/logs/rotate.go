package logs

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Names of rotated files are those of the reference kubelet: "0.log.20060102-150405", with
// ".gz" once it is compressed, and ".tmp" while it is being compressed.
const (
	timestampFormat = "20060102-150405"
	gzipSuffix      = ".gz"
	tmpSuffix       = ".tmp"
)

// rotate renames the log file and makes the runtime open a new one. It removes surplus files
// first, because the disk may be full.
func (r *Rotator) rotate(ctx context.Context, f *logFile) error {
	dir, log, err := openLogDir(f.Log)
	if err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	defer dir.Close()
	if f.compressMu.TryLock() { // no compression is in progress
		err := removeLeftovers(log)
		f.compressMu.Unlock()
		if err != nil {
			return fmt.Errorf("rotate log: %w", err)
		}
	}
	older, err := olderFiles(log)
	if err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	// The current file and the one to be rotated now count, too.
	if surplus := len(older) - (r.cfg.MaxFiles - 2); surplus > 0 {
		for _, path := range older[:surplus] {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("rotate log: %w", err)
			}
		}
	}
	renamed := rotatedName(log, r.deps.Clock.Now())
	if err := os.Rename(log, renamed); err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	if err := r.deps.Reopen(ctx, f.ID); err != nil {
		// The runtime still writes to the file, so it must have its name again.
		if _, there := os.Lstat(log); errors.Is(there, os.ErrNotExist) {
			err = errors.Join(err, os.Rename(renamed, log))
		}
		return fmt.Errorf("rotate log: %w", err)
	}
	return nil
}

// openLogDir opens the directory of a log, and returns a path to the log that leads through the open directory. A
// pod that mounts its log directory can replace it by a link at any moment; none is followed.
func openLogDir(log string) (dir *os.File, path string, err error) {
	dir, err = os.OpenFile(filepath.Dir(log), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, "", err
	}
	return dir, fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(log)), nil
}

// rotatedName returns the new name of the log file. If a log is rotated twice in a second, the
// name includes the nanoseconds; names stay in order.
func rotatedName(log string, now time.Time) string {
	name := log + "." + now.Format(timestampFormat)
	for _, suffix := range []string{"", gzipSuffix} {
		if _, err := os.Lstat(name + suffix); err == nil {
			return name + "." + fmt.Sprintf("%09d", now.Nanosecond())
		}
	}
	return name
}

// filesWithPrefix lists the files whose names begin with the log's name, without the log
// itself, in order.
func filesWithPrefix(log string) ([]string, error) {
	dir, base := filepath.Split(log)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), base+".") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Compare(strings.TrimSuffix(a, gzipSuffix), strings.TrimSuffix(b, gzipSuffix))
	})
	return paths, nil
}

// removeLeftovers removes what a crash during compression has left: temporary files, and
// uncompressed files that are also compressed.
func removeLeftovers(log string) error {
	paths, err := filesWithPrefix(log)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, path := range paths {
		there[path] = true
	}
	for _, path := range paths {
		if strings.HasSuffix(path, tmpSuffix) || there[path+gzipSuffix] {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// olderFiles lists a log's rotated files, the oldest first.
func olderFiles(log string) ([]string, error) {
	paths, err := filesWithPrefix(log)
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, tmpSuffix) }), err
}

// compress compresses a log's rotated files, except the newest, which may still be read. A
// rotation does not wait for it, so some files may be gone when it reaches them.
func (r *Rotator) compress(ctx context.Context, f *logFile) {
	if !f.compressMu.TryLock() {
		return // the compression in progress lists the files again
	}
	defer f.compressMu.Unlock()
	select {
	case r.compressSlots <- struct{}{}:
		defer func() { <-r.compressSlots }()
	case <-ctx.Done():
		return
	}
	dir, log, err := openLogDir(f.Log)
	if err != nil {
		return // the log was removed with its pod
	}
	defer dir.Close()
	for ctx.Err() == nil {
		path := nextToCompress(log)
		if path == "" {
			return
		}
		if err := compressFile(ctx, path); err != nil && !errors.Is(err, os.ErrNotExist) {
			r.deps.Log.Warn("compress container log failed", "path", filepath.Join(filepath.Dir(f.Log), filepath.Base(path)), "err", err)
			return
		}
	}
}

// nextToCompress returns the oldest uncompressed file except the newest, "" if there is none.
func nextToCompress(log string) string {
	older, err := olderFiles(log)
	if err != nil {
		return "" // the log was removed with its pod
	}
	plain := slices.DeleteFunc(older, func(path string) bool { return strings.HasSuffix(path, gzipSuffix) })
	if len(plain) < 2 {
		return ""
	}
	return plain[0]
}

// compressFile replaces a log file by its compressed form. A pod that mounts its log directory
// can create symbolic links and FIFOs there: they are not followed and do not block.
func compressFile(ctx context.Context, path string) (err error) {
	from, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("compress log: %w", err)
	}
	defer from.Close()
	info, err := from.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return fmt.Errorf("compress log: %w", err)
	}
	temporary := path + tmpSuffix
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("compress log: %w", err)
	}
	to, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return fmt.Errorf("compress log: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary)
			err = fmt.Errorf("compress log: %w", err)
		}
	}()
	// Speed before size: the CPU time belongs to the pods.
	writer, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return errors.Join(err, to.Close())
	}
	_, err = io.Copy(writer, contextReader{ctx, from})
	// After a crash the compressed form is kept, so sync it before the rename.
	if err := errors.Join(err, writer.Close(), to.Sync(), to.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path+gzipSuffix); err != nil {
		return err
	}
	return os.Remove(path)
}

// contextReader reads until ctx is done.
type contextReader struct {
	ctx  context.Context
	from io.Reader
}

func (u contextReader) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.from.Read(p)
}
