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

// lateWrites is how long a file is read on that nobody should write to any more, where it
// cannot be known whether somebody does.
const lateWrites = time.Second

// follower prints a log as it grows, through rotations, until the container has ended. It
// sleeps until the kernel says that something changed.
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
	// patience ends with lateWrites; nil while the file may rightly be written to.
	patience clock.Timer
	late     bool // patience has ended
}

func (f *follower) run(ctx context.Context) error {
	if err := f.begin(); err != nil {
		return err
	}
	for {
		// What makes this look the last at the file must be known before it is taken.
		ended := isClosed(f.ended)
		name, next := f.successor()
		leaving := ended || next != nil
		last := leaving && (f.late || abandoned(f.file))
		if err := f.printFile(ctx, last); err != nil {
			return err
		}
		switch {
		case leaving && !last:
			f.bePatient()
		case next != nil:
			if err := f.turnTo(name, next); err != nil {
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

// begin watches the file and its folder.
func (f *follower) begin() (err error) {
	f.wake = notify.New()
	folder, err := f.dir.Open(".")
	if err != nil {
		return err
	}
	defer folder.Close()
	if f.dirWatch, err = f.reader.watcher.add(folder, f.wake); err != nil {
		return err
	}
	f.watch, err = f.reader.watcher.add(f.file, f.wake)
	return err
}

// wait sleeps until there may be more to do.
func (f *follower) wait(ctx context.Context, ended bool) error {
	var over <-chan time.Time
	if f.patience != nil {
		over = f.patience.C()
	}
	news := f.ended
	if ended {
		news = nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.wake:
	case <-news:
	case <-over:
		f.late = true
	}
	return nil
}

// bePatient grants a file, whose writer was told to go, some time for its last lines.
func (f *follower) bePatient() {
	if f.patience == nil {
		f.patience = f.reader.clock.NewTimer(lateWrites)
	}
}

// printFile prints what is new in the file. An unfinished line waits until it is finished,
// unless this is the last look.
func (f *follower) printFile(ctx context.Context, last bool) error {
	if info, err := f.file.Stat(); err == nil && info.Size() < f.offset {
		f.offset = 0 // it was cut short and is written anew
	}
	if _, err := f.file.Seek(f.offset, io.SeekStart); err != nil {
		return err
	}
	lines := newLineReader(f.file)
	for begin := f.offset; ; {
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
		f.offset = begin + lines.used
		if entry, err := ParseEntry(line); err == nil {
			if err := f.out.print(entry); err != nil {
				return err
			}
		}
	}
}

// successor is the file that the runtime went on to, nil while it has not. A reader that
// is slow to follow may find several, and takes one after the other.
func (f *follower) successor() (name string, file os.FileInfo) {
	current, err := f.file.Stat()
	if err != nil {
		return "", nil
	}
	if newest, err := f.dir.Stat(f.name); err != nil || os.SameFile(current, newest) {
		return "", nil
	}
	names := f.rotated()
	name = f.after(current, names)
	file, err = f.dir.Stat(name)
	if err != nil || !slices.Equal(names, f.rotated()) {
		return "", nil // it is being rotated just now, of which the folder's watch tells
	}
	return name, file
}

// after finds which file follows another. Rotated files are named for the log and the time
// of their rotation, so their names are in order.
func (f *follower) after(current os.FileInfo, names []string) string {
	later := f.name // where the file itself is gone, the oldest that was written later
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

// rotated lists the log's older files that can be read as they are, the oldest first.
func (f *follower) rotated() []string {
	folder, err := f.dir.Open(".")
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, f.name+".") || strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".tmp")
	})
	slices.Sort(names)
	return names
}

// turnTo goes on with another file. One that is not behind its name any more was rotated
// in its turn, and is found again by its new name.
func (f *follower) turnTo(name string, want os.FileInfo) error {
	file, _, err := openIn(f.dir, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("go on with the next file: %w", err)
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
	f.stopPatience()
	f.watch.stop()
	f.file.Close()
	f.file, f.watch, f.offset = file, watch, 0
	return nil
}

func (f *follower) stopPatience() {
	if f.patience != nil {
		f.patience.Stop()
	}
	f.patience, f.late = nil, false
}

func (f *follower) close() {
	f.stopPatience()
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
