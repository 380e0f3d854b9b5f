package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"k8s.io/utils/clock"
)

// Config says where logs are.
type Config struct {
	// Dir holds a folder for each pod. Log files are read below it and nowhere else.
	Dir string
}

// Deps are what a Reader needs from outside.
type Deps struct {
	Clock clock.Clock
	Log   *slog.Logger
}

// Reader reads container logs for people. Its methods may be called from any goroutine;
// following needs Run.
type Reader struct {
	dir     string
	clock   clock.Clock
	log     *slog.Logger
	watcher *watcher
}

// New makes a reader; nothing is opened before it is asked for.
func New(cfg Config, deps Deps) (*Reader, error) {
	if cfg.Dir == "" {
		return nil, errors.New("make log reader: no directory")
	}
	if deps.Clock == nil || deps.Log == nil {
		return nil, errors.New("make log reader: clock and log are needed")
	}
	return &Reader{dir: cfg.Dir, clock: deps.Clock, log: deps.Log, watcher: newWatcher()}, nil
}

// Run serves those who follow a log, until ctx is done.
func (r *Reader) Run(ctx context.Context) error { return r.watcher.run(ctx) }

// Options is what to read of a log.
type Options struct {
	Tail       *int64    // only the last entries; nil: all
	Limit      *int64    // stop after so many bytes; nil: never
	Since      time.Time // leave out what is older
	Timestamps bool      // begin each line with its time
	Stream     Stream    // only this stream; empty: both
	// Ended, where it is not nil, has the log followed as it is written until the channel
	// is closed, which says that the container has ended.
	Ended <-chan struct{}
}

// Read writes the log at path, as the runtime named it, to w. It writes in large pieces,
// and whenever it has caught up with the container. A first write of nothing says that
// there is a log.
func (r *Reader) Read(ctx context.Context, path string, o Options, w io.Writer) error {
	dir, name, err := r.openDir(path)
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	defer dir.Close()
	file, size, err := openIn(dir, name)
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	start := int64(0)
	if o.Tail != nil {
		// More lines than fit a file's size are all of them.
		if start, err = tailOffset(file, size, int(min(*o.Tail, size))); err != nil {
			file.Close()
			return fmt.Errorf("read log: %w", err)
		}
	}
	if _, err := w.Write(nil); err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	out := &printer{opts: o, w: bufio.NewWriterSize(w, 32<<10), lineStart: true}
	if o.Ended == nil {
		defer file.Close()
		err = printOnce(ctx, file, start, out)
	} else {
		f := &follower{reader: r, dir: dir, name: name, file: file, offset: start, out: out, ended: o.Ended}
		defer f.close()
		err = f.run(ctx)
	}
	if err != nil && !errors.Is(err, errLimit) {
		return fmt.Errorf("read log: %w", err)
	}
	return nil
}

// printOnce prints the file as it is, an unfinished last line included.
func printOnce(ctx context.Context, file *os.File, start int64, out *printer) error {
	left := int64(-1)
	if out.opts.Tail != nil {
		left = *out.opts.Tail
	}
	if _, err := file.Seek(start, io.SeekStart); err != nil {
		return err
	}
	for lines := newLineReader(file); left != 0; {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		entry, err := ParseEntry(line)
		if err != nil {
			continue // one bad line must not hide the others
		}
		if err := out.print(entry); err != nil {
			return err
		}
		left--
	}
	return out.flush()
}
