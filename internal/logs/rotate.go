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
)

// Names of a log's older files, as the reference kubelet has them: "0.log.20060102-150405",
// with ".gz" once it is compressed, and ".tmp" while it is being.
const (
	rotatedAt  = "20060102-150405"
	compressed = ".gz"
	unfinished = ".tmp"
)

// rotate has a container go on in a new file. Old files go first: the log may be rotated
// because the disk fills up.
func (r *Rotator) rotate(ctx context.Context, f *logFile) error {
	c := f.Container
	if f.pack.TryLock() { // nobody is compressing
		err := tidy(c.Log)
		f.pack.Unlock()
		if err != nil {
			return fmt.Errorf("rotate log: %w", err)
		}
	}
	older, err := olderFiles(c.Log)
	if err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	// The one that is written to and the one that was until now come on top.
	if surplus := len(older) - (r.cfg.MaxFiles - 2); surplus > 0 {
		for _, path := range older[:surplus] {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("rotate log: %w", err)
			}
		}
	}
	aside := freeName(c.Log, r.deps.Clock.Now())
	if err := os.Rename(c.Log, aside); err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	if err := r.deps.Reopen(ctx, c.ID); err != nil {
		// The container still writes to the file, which must be found by its name.
		if _, there := os.Lstat(c.Log); errors.Is(there, os.ErrNotExist) {
			err = errors.Join(err, os.Rename(aside, c.Log))
		}
		return fmt.Errorf("rotate log: %w", err)
	}
	return nil
}

// freeName is what the file is called from now on. Where a log fills up twice in a second,
// the time is told more exactly; the names stay in order.
func freeName(log string, now time.Time) string {
	name := log + "." + now.Format(rotatedAt)
	for _, suffix := range []string{"", compressed} {
		if _, err := os.Lstat(name + suffix); err == nil {
			return name + "." + fmt.Sprintf("%09d", now.Nanosecond())
		}
	}
	return name
}

// named lists the files whose names begin with a log's, without the log itself, in order.
func named(log string) ([]string, error) {
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
		return cmp.Compare(strings.TrimSuffix(a, compressed), strings.TrimSuffix(b, compressed))
	})
	return paths, nil
}

// tidy removes what a crash has left of compressing a log's files: halves, and files that
// are there in both forms.
func tidy(log string) error {
	paths, err := named(log)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if strings.HasSuffix(path, unfinished) || slices.Contains(paths, path+compressed) {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// olderFiles lists a log's rotated files, the oldest first.
func olderFiles(log string) ([]string, error) {
	paths, err := named(log)
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, unfinished) }), err
}

// compress packs a log's older files, all but the last, which somebody may still read.
// Rotating does not wait for it, so some of them may be gone by the time of their turn.
func (r *Rotator) compress(ctx context.Context, f *logFile) {
	if !f.pack.TryLock() {
		return // whoever does it lists the files again
	}
	defer f.pack.Unlock()
	select {
	case r.compressing <- struct{}{}:
		defer func() { <-r.compressing }()
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		path := nextToCompress(f.Log)
		if path == "" {
			return
		}
		if err := compressFile(ctx, path); err != nil && !errors.Is(err, os.ErrNotExist) {
			r.deps.Log.Warn("log not compressed", "log", path, "err", err)
			return
		}
	}
}

// nextToCompress is the oldest file that is not, "" where there is none but the last.
func nextToCompress(log string) string {
	older, err := olderFiles(log)
	if err != nil {
		return "" // the log went with its pod
	}
	plain := slices.DeleteFunc(older, func(path string) bool { return strings.HasSuffix(path, compressed) })
	if len(plain) < 2 {
		return ""
	}
	return plain[0]
}

// compressFile replaces a log file by its packed form. Whoever can write to the folder, such as
// a pod that mounts it, can put links and pipes there: none is followed or waited for.
func compressFile(ctx context.Context, path string) (err error) {
	from, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("compress log: %w", err)
	}
	defer from.Close()
	info, err := from.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return fmt.Errorf("compress log: %w", err)
	}
	temporary := path + unfinished
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
	// Quick rather than small: the machine's time belongs to its pods.
	packer, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return errors.Join(err, to.Close())
	}
	_, err = io.Copy(packer, untilDone{ctx, from})
	// Of both forms the packed one is kept: it has to be on the disk before it has its name.
	if err := errors.Join(err, packer.Close(), to.Sync(), to.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path+compressed); err != nil {
		return err
	}
	return os.Remove(path)
}

// untilDone reads until ctx ends.
type untilDone struct {
	ctx  context.Context
	from io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.from.Read(p)
}
