package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/notify"
)

// lateWritePeriod is how long to keep reading a file after a rotation or the container's exit, if
// it is not certain that the file has no writer.
const lateWritePeriod = time.Second

// follower prints a log as it grows, through rotations, until the container has exited. It waits
// for inotify events.
type follower struct {
	reader *Reader
	dir    *os.Root
	name   string
	out    *printer
	ended  <-chan struct{}

	file   *os.File
	offset int64 // of the first line not printed yet

	wake     notify.Signal
	dirWatch *watch
	watch    *watch // of file
	// lateTimer runs for lateWritePeriod; nil while the file is the current one.
	lateTimer   clock.Timer
	lateExpired bool // lateTimer has fired
}

func (f *follower) run(ctx context.Context) error {
	if err := f.start(); err != nil {
		return err
	}
	for {
		// Whether this read of the file is the last must be determined before it.
		ended := isClosed(f.ended)
		name, next := f.successor()
		finished := ended || next != nil
		last := finished && (f.lateExpired || hasNoWriter(f.file))
		if err := f.printFile(ctx, last); err != nil {
			return err
		}
		switch {
		case finished && !last:
			f.startLateTimer()
		case next != nil:
			if err := f.switchTo(name, next); err != nil {
				return err
			}
			continue
		case ended:
			return nil
		}
		if err := f.wait(ctx, ended); err != nil {
			return err
		}
	}
}

// start watches the file and its directory.
func (f *follower) start() (err error) {
	f.wake = notify.New()
	dir, err := f.dir.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if f.dirWatch, err = f.reader.watcher.add(dir, f.wake); err != nil {
		return err
	}
	f.watch, err = f.reader.watcher.add(f.file, f.wake)
	return err
}

// wait waits until there may be more to do.
func (f *follower) wait(ctx context.Context, ended bool) error {
	var over <-chan time.Time
	if f.lateTimer != nil {
		over = f.lateTimer.C()
	}
	endedCh := f.ended
	if ended {
		endedCh = nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.wake:
	case <-endedCh:
	case <-over:
		f.lateExpired = true
	}
	return nil
}

// startLateTimer gives the writer of a rotated or final file time for its last lines.
func (f *follower) startLateTimer() {
	if f.lateTimer == nil {
		f.lateTimer = f.reader.clock.NewTimer(lateWritePeriod)
	}
}

// printFile prints the new content of the file. It prints an incomplete last line only if this
// is the last read.
func (f *follower) printFile(ctx context.Context, last bool) error {
	if info, err := f.file.Stat(); err == nil && info.Size() < f.offset {
		f.offset = 0 // it was truncated
	}
	if _, err := f.file.Seek(f.offset, io.SeekStart); err != nil {
		return err
	}
	lines := newLineReader(contextReader{ctx, f.file})
	for start := f.offset; ; {
		line, err := lines.next()
		if errors.Is(err, io.EOF) || err == nil && !last && !bytes.HasSuffix(line, []byte{'\n'}) {
			return f.out.flush()
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		f.offset = start + lines.used
		if entry, err := ParseEntry(line); err == nil {
			if err := f.out.print(entry); err != nil {
				return err
			}
		}
	}
}

// successor returns the next file of the log, nil if the current file is the newest. After
// several rotations, it returns one file after the other.
func (f *follower) successor() (name string, file os.FileInfo) {
	current, err := f.file.Stat()
	if err != nil {
		return "", nil
	}
	if newest, err := f.dir.Stat(f.name); err != nil || os.SameFile(current, newest) {
		return "", nil
	}
	names := f.rotated()
	name = f.nextAfter(current, names)
	file, err = f.dir.Stat(name)
	if err != nil || !slices.Equal(names, f.rotated()) {
		return "", nil // a rotation is in progress; the watch of the directory reports its end
	}
	return name, file
}

// nextAfter returns the name of the file that follows current. The names of rotated files
// contain the time of their rotation, so they are in order.
func (f *follower) nextAfter(current os.FileInfo, names []string) string {
	later := f.name // if the file itself is gone, the oldest that was written later
	for i, name := range slices.Backward(names) {
		info, err := f.dir.Stat(name)
		switch {
		case err != nil:
		case os.SameFile(current, info) && i+1 < len(names):
			return names[i+1]
		case os.SameFile(current, info):
			return f.name
		case info.ModTime().After(current.ModTime()):
			later = name
		}
	}
	return later
}

// rotated lists the uncompressed rotated files, the oldest first.
func (f *follower) rotated() []string {
	dir, err := f.dir.Open(".")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, f.name+".") || strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".tmp")
	})
	slices.Sort(names)
	return names
}

// switchTo continues with another file. If the name is no longer that of the file, it was rotated
// again, and successor finds its new name.
func (f *follower) switchTo(name string, want os.FileInfo) error {
	file, _, err := openIn(f.dir, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open next log file: %w", err)
	}
	if got, err := file.Stat(); err != nil || !os.SameFile(got, want) {
		file.Close()
		return err
	}
	watch, err := f.reader.watcher.add(file, f.wake)
	if err != nil {
		file.Close()
		return err
	}
	f.stopLateTimer()
	f.watch.stop()
	f.file.Close()
	f.file, f.watch, f.offset = file, watch, 0
	return nil
}

func (f *follower) stopLateTimer() {
	if f.lateTimer != nil {
		f.lateTimer.Stop()
	}
	f.lateTimer, f.lateExpired = nil, false
}

func (f *follower) close() {
	f.stopLateTimer()
	f.watch.stop()
	f.dirWatch.stop()
	f.file.Close()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
